"""The election: one contender's part in one job, as a state machine without I/O.

It does NOT promise that a paused process notices in time. ``is_leader`` is a promise about clocks; only the fence at
the store (a claim renames the leader directory, so every old path is gone) always holds.

Events and the time go in through :meth:`Election.handle`, commands come out, and nothing else changes the state: the
simulator drives exactly this code. The election is level-triggered: after every answer that is not *done* it looks at
the store, and decides from what it sees. But it holds, claims and believes only what was acknowledged: a NameNode can
list what its journal will never have, so a listed change is confirmed by one more rename that depends on it. At most
one command for the file system is under way at a time.

The steps of a takeover:

1. Look: list the job's directory for the leader directory, list its record for the lease. 2. The lease may be seized if
it was released, if it did not change for the whole of its time to live, if a ZooKeeper session attests it whose node is
gone, seen gone *after* the lease was read, or if its holder's process is gone. 3. Seize: rename the lease entry to one
of our own. From here on the lease is ours, counted from the start of the call. 4. Claim: rename the leader directory to
the next epoch and our session id. Every path of the old leader is gone now. 5. Granted, if the lease is still ours by
our own clock.

A leader renews the lease by renaming it, and switches its mode in the same way: ``zookeeper`` while ZooKeeper attests
this process's session, ``hdfs`` otherwise.

:mod:`leader.election.state` holds what is known and its invariants, :mod:`leader.election.schedule` the timers,
:mod:`leader.election.responses` reads answers into the state, :mod:`leader.election.steps` chooses the next command.
"""

from collections.abc import Callable

from leader.election.events import (
    Adopt,
    AskProcess,
    AttestationChecked,
    Attested,
    CheckAttestation,
    Command,
    Confirm,
    Contend,
    Event,
    FilesDone,
    Log,
    Nudge,
    ProcessAsked,
    ProcessGone,
    Publish,
    Release,
    ReleaseHeard,
    StepDown,
    Suspect,
    Tick,
)
from leader.election.responses import Responses
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.election.steps import Steps
from leader.layout.contact import ContactAddress
from leader.layout.lease import Attestation, Lease
from leader.timing import NEVER, Timing


class Election:
    """One contender's part in the election of one job's leader. Read ``state``; only :meth:`handle` changes it."""

    def __init__(
        self,
        job: str,
        contender: str,  # this contender's name, for people and for switch-overs
        timing: Timing,
        new_session_id: Callable[[], str],  # gives a random UUID at every call
        wall: Callable[[], float],  # gives the seconds since 1970, for bars only; see `leader.layout.bar`
        # Where this process listens; None if it neither listens nor suspects others.
        contact: ContactAddress | None = None,
    ) -> None:
        """Start as a standby that does not contend."""
        self.state = ElectionState(job, contender, timing, new_session_id(), contact)
        self._responses = Responses(self.state, wall)
        self._steps = Steps(self.state, new_session_id)

    def wake_at(self, now: float) -> float:
        """Boot-clock seconds of the next time something is to be done even if nothing happens."""
        state = self.state
        times = state.schedule.due_times()
        if state.phase is Phase.STANDBY:
            times += [state.rival.expiry(), state.rival.check_due, state.rival.hearing_ends(), state.barred_until]
        elif state.phase is Phase.RELEASING:
            times.append(state.schedule.give_up_at)
        else:
            until = state.holding.until()
            times += [
                until,
                until - state.timing.stop_margin,
                self._steps.renewal_due(now),
                state.schedule.announcement_due,
            ]
        return min((time for time in times if time > now), default=NEVER)

    # --- the one door

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take an event at a time (boot-clock seconds, never going back) and return what is to be done, in order."""
        return [*self._on_event(event, now), *self._expire(now), *self._next_commands(now)]

    # --- events

    def _on_event(self, event: Event, now: float) -> list[Command]:  # noqa: C901, PLR0911, PLR0912  # one branch per event
        state = self.state
        match event:
            case Tick():
                return []
            case FilesDone(_, outcome):
                return self._responses.on_response(outcome, now)
            case Attested(attestation):
                self._attested(attestation, now)
                return []
            case AttestationChecked(token, present):
                state.rival.on_checked(token, present, now)
                if present and state.phase is Phase.STANDBY:
                    state.schedule.postpone_look(now + state.rival.poll_interval(state.attestation))
                elif present is False and state.lease is not None and state.lease.paused:
                    self._look_soon(now)  # the pause may be over
                return []
            case ProcessGone(session_id):
                return self._process_gone(session_id, now)
            case ProcessAsked(token, lives):
                return self._process_asked(token, lives=lives)
            case ReleaseHeard(lease):
                return self._release_heard(lease, now)
            case Nudge():
                self._nudged(now)
                return []
            case Contend():
                state.contending = True
                state.schedule.look_by(now)
                return []
            case Adopt(leader):
                state.adopt(leader, now)
                return []
            case Confirm(session_id, endpoints):
                if state.phase is Phase.LEADING and session_id == state.session_id and state.directory is not None:
                    state.announcement.confirm(state.job, state.directory, endpoints)
                return []
            case StepDown(reason):
                return self._step_down(reason, now)
            case Release(successor):
                return state.release(successor)

    def _attested(self, attestation: Attestation, now: float) -> None:
        state = self.state
        if attestation.answers != state.attestation.answers and state.phase is Phase.STANDBY:
            # ZooKeeper begins or ends to watch a lease for this standby: look again. Every standby hears it at once, so
            # each looks at a moment of its own. A leader need not look: it renews now, and learns all from that.
            state.rival.recheck(now)
            fraction = int(state.session_id[:4], 16) / 0x10000
            state.schedule.look_by(now + fraction * state.timing.renewal)
        state.attestation = attestation
        state.holding.attest(attestation)

    def _nudged(self, now: float) -> None:
        self.state.rival.recheck(now)
        # A look under way may have missed what this is about, and no other answer may postpone the next look.
        self.state.schedule.look_again = True
        self._look_soon(now)

    def _process_gone(self, session_id: str, now: float) -> list[Command]:
        state = self.state
        if state.rival_owner != session_id or state.rival.lease is None:
            return []
        state.rival.mark_process_gone(session_id)
        self._look_soon(now)
        return [Suspect(state.rival.lease.contender)]

    def _process_asked(self, token: str, *, lives: bool) -> list[Command]:
        state = self.state
        state.rival.on_asked(token, lives=lives)
        if not lives or state.rival_owner is None or state.rival.lease is None:
            return []
        name, seconds = state.rival.lease.contender, state.timing.session_timeout
        said = f"ZooKeeper has no session of {name}, but its process answers: it has {seconds:g} s to renew its lease."
        return [Log(said)]

    def _release_heard(self, lease: Lease, now: float) -> list[Command]:
        """Seize the lease as it is said to be now: if it is not, the store refuses, and the look after that tells."""
        state = self.state
        if state.rival_owner is None or not state.rival.may_become(lease):
            return []
        operation = self._steps.seize_unread(lease, now) if state.pending is None else None
        if operation is None:
            self._nudged(now)
            return []
        return [self._send(operation, now)]

    def _look_soon(self, now: float) -> None:
        state = self.state
        if state.phase is Phase.STANDBY and state.contending:
            state.schedule.look_soon(now, state.timing.retry)
        elif state.phase is Phase.LEADING:
            state.schedule.look_soon(now, state.timing.poll)

    def _step_down(self, reason: str, now: float) -> list[Command]:
        state = self.state
        state.contending = False
        if state.adopting is not None:
            return state.give_up_adoption(reason, now)
        if state.phase is Phase.LEADING:
            return state.revoke(reason, None)
        return state.release("") if state.phase is Phase.CLAIMING else []

    # --- expiry

    def _expire(self, now: float) -> list[Command]:
        state = self.state
        if state.phase is Phase.STANDBY:
            return []
        if state.phase is Phase.RELEASING:
            return state.lose(now) if now >= state.schedule.give_up_at else []
        commands: list[Command] = []
        until = state.holding.until()
        if now >= until - state.timing.stop_margin:
            commands += state.demand_stop("It could not renew its lease in time.", until)
        if now >= until:
            commands += state.lose(now)
        return commands

    # --- next commands

    def _next_commands(self, now: float) -> list[Command]:
        """Return what is to be done now: at most one operation on the file system, and what needs no answer from it."""
        state = self.state
        commands: list[Command] = []
        if state.pending is None and (operation := self._steps.next(now)) is not None:
            commands.append(self._send(operation, now))
        if state.phase is Phase.LEADING and (information := state.announcement.newly_published()):
            commands.append(Publish(information))
        if state.competes:
            token = state.rival.next_check(state.attestation, now)
            if token:
                commands.append(CheckAttestation(token))
            if question := state.rival.next_question():
                commands.append(AskProcess(*question))
        return commands

    def _send(self, operation: PendingOperation, now: float) -> Command:
        self.state.pending = operation
        self.state.schedule.sent_at = now
        return operation.command
