"""The election: one contender's part in one job, as a state machine without I/O.

What it does NOT promise: that a process that was paused notices in time. ``is_leader`` is a promise about clocks; only
the fence at the store (a claim renames the leader directory, so every old path is gone) holds whatever happens.

Events and the time go in through :meth:`Election.handle`, commands come out, and nothing else changes its state: the
simulator drives exactly this code. It is level-triggered: after every answer that is not *done* it looks at the store
and decides from what it sees what to do next. But it holds, claims and believes only what was acknowledged: a NameNode
lists what its journal may never have, so what is only seen is made sure by one more rename that needs it. One command
for the file system is under way at a time.

The steps of a take-over:

1. Look: list the job's directory for the leader directory, list its record for the lease.
2. The lease may be seized if it was released, if it did not change for the whole of its time to live, or if it is
   attested by a ZooKeeper session whose node is gone: seen gone *after* the lease was read.
3. Seize: rename the lease entry to one of our own. From here on the lease is ours, counted from the start of the call.
4. Claim: rename the leader directory to the next epoch and our session id. Every path of the old leader is gone now.
5. Granted, if the lease is still ours by our own clock.

A leader renews the lease by renaming it, and switches its mode the same way: ``zookeeper`` while ZooKeeper attests this
process's session, ``hdfs`` otherwise.
"""

from collections.abc import Callable
from dataclasses import replace

from leader import names
from leader.complaints import Complaints
from leader.confirmation import Confirmation
from leader.events import (
    Asked,
    AttestationChecked,
    Attested,
    CheckAttestation,
    Command,
    Confirm,
    Contend,
    CreateJob,
    Event,
    FilesDone,
    Grant,
    ListJob,
    ListRecord,
    Nudge,
    Publish,
    Release,
    Rename,
    Revoke,
    Say,
    StepDown,
    Tick,
    Unpublish,
)
from leader.information import LeaderInformation, Record
from leader.lease import Attestation, Holding, Lease, Mode, check_contender
from leader.names import RECORD, LeaderDirectory
from leader.observation import NEVER, Observation
from leader.step import Phase, Step
from leader.timing import RENEWALS_PER_TTL, Timing
from store.errors import NotFound
from store.outcome import Outcome

AT_ONCE = float("-inf")


class Election:
    """One contender's part in the election of one job's leader."""

    def __init__(self, job: str, contender: str, timing: Timing, new_session_id: Callable[[], str]) -> None:
        """Start as a standby that does not contend.

        Args:
            job: the job's name.
            contender: this contender's name, for people and for switch-overs.
            timing: all durations.
            new_session_id: gives a random UUID at every call.

        Raises:
            InvalidName: one of the names cannot be one.
        """
        self.job = names.check_job(job)
        self.contender = check_contender(contender)
        self.timing = timing
        self.phase = Phase.STANDBY
        self.contending = False
        self.session_id = new_session_id()
        self.directory: LeaderDirectory | None = None
        self.attestation = Attestation()
        self._new_session_id = new_session_id
        self._observation = Observation(contender, timing)
        self._holding = Holding(drift=timing.drift)
        self._confirmation = Confirmation()
        self._reason = ""
        self._successor = ""
        self._under_way: Step | None = None
        self._sent_at = AT_ONCE
        self._looked_at = AT_ONCE
        self._look_due = NEVER
        self._look_from_top = True
        self._look_again = False
        self._missing = False
        self._retry_at = AT_ONCE
        self._held_off_until = AT_ONCE
        self._give_up_at = AT_ONCE
        self._warned = False
        self._complaints = Complaints()
        self._commands: list[Command] = []

    # --- what others may ask

    @property
    def information(self) -> LeaderInformation | None:
        """What this leader has confirmed, published or not yet; None if it does not lead or has not confirmed."""
        return self._confirmation.information if self.phase is Phase.LEADING else None

    @property
    def lease(self) -> Lease | None:
        """The lease as last seen, whoever holds it."""
        return self._observation.lease

    def holds_until(self) -> float:
        """Boot-clock seconds until which nobody else can lead; minus infinity if somebody can."""
        return self._holding.until()

    def leads_until(self) -> float:
        """Boot-clock seconds until which this contender leads; minus infinity if it does not."""
        if self.phase is not Phase.LEADING:
            return AT_ONCE
        return self._holding.until() - self.timing.stop_margin

    def is_leader(self, now: float) -> bool:
        """Whether this contender leads at that time. Nobody else is asked."""
        return now < self.leads_until()

    def wake_at(self, now: float) -> float:
        """Boot-clock seconds of the next time something is to be done even if nothing happens."""
        times = [self._look_due, self._held_off_until, self._retry_at]
        if self.phase is Phase.STANDBY:
            times += [self._observation.expiry(), self._observation.check_due]
        elif self.phase is Phase.RELEASING:
            times.append(self._give_up_at)
        else:
            until = self._holding.until()
            times += [until, until - self.timing.stop_margin, self._renewal_due()]
        return min((time for time in times if time > now), default=NEVER)

    def validate(self) -> None:
        """Assert what must hold after every step; for tests."""
        held = self._holding.current
        assert (self.phase is Phase.STANDBY) == (held is None), "a standby holds nothing, all others hold the lease"
        assert held is None or held.owner == self.session_id, "the lease held is our own session's"
        if self.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            assert self.directory is not None, "a leader has a directory"
            assert self.directory.session_id == self.session_id, "a leader's directory bears its session id"

    # --- the one door

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take an event at a time (boot-clock seconds, never going back) and return what is to be done, in order."""
        self._commands = []
        self._take(event, now)
        self._expire(now)
        self._proceed(now)
        return self._commands

    def _take(self, event: Event, now: float) -> None:  # noqa: C901  # one branch an event
        match event:
            case Tick():
                pass
            case FilesDone(_, outcome):
                self._answered(outcome, now)
            case Attested(attestation):
                if attestation.usable != self.attestation.usable:
                    self._nudged(now)
                self.attestation = attestation
                self._holding.attest(attestation)
            case AttestationChecked(token, present):
                self._observation.checked(token, present, now)
                if present and self.phase is Phase.STANDBY and not self._look_again:
                    self._look_due = max(self._look_due, now + self._observation.poll_interval(self.attestation))
            case Nudge():
                self._nudged(now)
            case Contend():
                self.contending = True
                self._look_due = min(self._look_due, now)
            case Confirm(session_id, endpoints):
                if self.phase is Phase.LEADING and session_id == self.session_id and self.directory is not None:
                    self._confirmation.confirm(self.job, self.directory, endpoints)
            case StepDown(reason):
                self._step_down(reason)
            case Release(successor):
                self._release(successor)

    def _nudged(self, now: float) -> None:
        self._observation.doubt(now)
        # A look under way may have missed what this is about, and no other answer may put the next one off.
        self._look_again = True
        if self.phase is Phase.STANDBY and self.contending:
            self._look_due = min(self._look_due, max(now, self._looked_at + self.timing.retry))
        elif self.phase is Phase.LEADING:
            self._look_due = min(self._look_due, max(now, self._looked_at + self.timing.poll))

    def _step_down(self, reason: str) -> None:
        self.contending = False
        if self.phase is Phase.LEADING:
            self._revoke(reason, until=None)
        elif self.phase is Phase.CLAIMING:
            self._release("")

    def _release(self, successor: str) -> None:
        self.contending = False
        if self.phase in (Phase.STANDBY, Phase.RELEASING):
            return
        if self.phase is Phase.LEADING:
            self._revoke("It gives the leadership back.", until=None)
        self._successor = successor
        self._give_up_at = self._holding.until()
        self.phase = Phase.RELEASING

    # --- what time ends

    def _expire(self, now: float) -> None:
        if self.phase is Phase.STANDBY:
            return
        if self.phase is Phase.RELEASING:
            if now >= self._give_up_at:
                self._lose(now)
            return
        until = self._holding.until()
        if now >= until - self.timing.stop_margin:
            self._warn("It could not renew its lease in time.", until)
        if now >= until:
            self._lose(now)

    def _revoke(self, reason: str, until: float | None) -> None:
        self.phase = Phase.STEPPING_DOWN
        self.contending = False
        self._warned = until is not None
        self._commands.append(Revoke(self.session_id, reason, until))

    def _warn(self, reason: str, until: float) -> None:
        """Work must have stopped by then, also if it was told before that it could take its time."""
        if self.phase is Phase.LEADING or (self.phase is Phase.STEPPING_DOWN and not self._warned):
            self._revoke(reason, until)

    def _overtaken(self, reason: str, now: float) -> None:
        self._warn(reason, now)
        self._lose(now)

    def _lose(self, now: float) -> None:
        """Hold nothing any more, from whatever phase."""
        if self.phase in (Phase.STEPPING_DOWN, Phase.RELEASING):
            self._commands.append(Unpublish())
        self.phase = Phase.STANDBY
        self._holding.clear()
        self._observation.disown(self.session_id)
        self._look_from_top = True
        self._look_due = now

    # --- what to do next

    def _proceed(self, now: float) -> None:
        if self._under_way is None and (step := self._next(now)) is not None:
            self._under_way = step
            self._sent_at = now
            self._commands.append(step.command)
        if self.phase is Phase.LEADING and (information := self._confirmation.announce()):
            self._commands.append(Publish(information))
        if (
            self.phase is Phase.STANDBY
            and self.contending
            and (token := self._observation.check(self.attestation, now))
        ):
            self._commands.append(CheckAttestation(token))

    def _next(self, now: float) -> Step | None:
        if self.phase is Phase.STANDBY and not self.contending:
            return None
        if self._missing:
            return Step(CreateJob()) if now >= self._retry_at else None
        if now >= self._look_due:
            self._look_again = False
            look_from_top = self._look_from_top or self.directory is None
            return Step(ListJob()) if look_from_top or self.directory is None else Step(ListRecord(self.directory))
        return self._act(now) if now >= self._retry_at and self.directory is not None else None

    def _act(self, now: float) -> Step | None:
        match self.phase:
            case Phase.STANDBY:
                return self._seize(now)
            case Phase.CLAIMING:
                return self._claim(now)
            case Phase.LEADING:
                return self._renew(now) or self._confirm()
            case Phase.STEPPING_DOWN:
                return self._renew(now)
            case Phase.RELEASING:
                return self._give_back(now)

    def _seize(self, now: float) -> Step | None:
        theirs, reason = self._observation.lease, self._observation.seizable(now)
        if theirs is None or reason is None or now < self._held_off_until:
            return None
        # Every try has a session id of its own: an earlier one that is executed late is nobody's lease.
        self._observation.disown(self.session_id)
        if theirs not in self._holding:  # else it is our last try, which is seen and not acknowledged, once more
            self._reason = reason
        self._holding.clear()
        self.session_id = self._new_session_id()
        ttl_ms = self.timing.short_ttl_ms
        mine = Lease(theirs.sequence + 1, Mode.HDFS, ttl_ms, self.session_id, "", self.contender)
        self._holding.send(mine, now)
        return Step(self._rename_lease(theirs, mine), lease=mine)

    def _claim(self, now: float) -> Step | None:
        if self.directory is None:
            return None
        if self.directory.session_id == self.session_id:
            # It was executed, as it seems. A change below it is acknowledged only if that is true.
            return self._change(self._wanted(), now)
        mine = LeaderDirectory(self.directory.epoch + 1, self.session_id)
        return Step(Rename(self.directory.name, mine.name), directory=mine)

    def _renew(self, now: float) -> Step | None:
        return self._change(self._wanted(), now) if now >= self._renewal_due() else None

    def _give_back(self, now: float) -> Step | None:
        held = self._holding.present
        if held is None:
            return None
        return self._change(replace(held, mode=Mode.RELEASED, ttl_ms=0, attestation="", successor=self._successor), now)

    def _confirm(self) -> Step | None:
        change = self._confirmation.next(self.directory) if self.directory else None
        return Step(change.command, change=change) if change else None

    def _wanted(self) -> Lease | None:
        held = self._holding.present
        if held is None:
            return None
        if self.attestation.usable and self.attestation.token is not None:
            token, ttl_ms = self.attestation.token, self.timing.long_ttl_ms
            return replace(held, mode=Mode.ZOOKEEPER, ttl_ms=ttl_ms, attestation=token)
        return replace(held, mode=Mode.HDFS, ttl_ms=self.timing.short_ttl_ms, attestation="")

    def _renewal_due(self) -> float:
        held = self._holding.current
        if held is None:
            return NEVER
        if held != self._holding.present:
            return AT_ONCE  # a renewal is seen, and not acknowledged
        if held.mode is Mode.ZOOKEEPER and held != self._wanted():
            return AT_ONCE
        # The way back to ZooKeeper waits for the next renewal, so that a flapping ZooKeeper costs no extra writes.
        return self._holding.started(held) + held.ttl / RENEWALS_PER_TTL

    def _change(self, wanted: Lease | None, now: float) -> Step | None:
        held = self._holding.present
        if held is None or wanted is None:
            return None
        target = self._holding.pending(wanted) or replace(wanted, sequence=self._holding.next_sequence)
        self._holding.send(target, now)
        return Step(self._rename_lease(held, target), lease=target)

    def _rename_lease(self, source: Lease, target: Lease) -> Rename:
        assert self.directory is not None, "a lease is always read in a directory"
        record = f"{self.directory.name}/{RECORD}"
        return Rename(f"{record}/{source.name}", f"{record}/{target.name}")

    # --- what the file system answered

    def _answered(self, outcome: Outcome[list[str] | None], now: float) -> None:
        step, self._under_way = self._under_way, None
        assert step is not None, "an answer belongs to a command"
        match step.command:
            case ListJob():
                self._job_listed(outcome, now)
            case ListRecord(directory):
                self._record_listed(directory, outcome, now)
            case CreateJob():
                self._missing = False
                self._look_due = now if outcome.done else self._sent_at + self.timing.poll
                self._complain(step, outcome)
            case _ if outcome.done:
                self._changed(step, now)
            case _:
                self._failed(step, outcome, now)

    def _failed(self, step: Step, outcome: Outcome[list[str] | None], now: float) -> None:
        """Refused or unknown: look what the store holds, and decide from that."""
        self._look_due = now
        self._retry_at = self._sent_at + self.timing.retry
        if isinstance(outcome.error, NotFound) or step.directory is not None:
            self._look_from_top = True
        if step.change is not None and outcome.refused:
            self._confirmation.refused(step.change)
        elif step.change is not None:
            self._confirmation.doubted(step.change)
        self._complain(step, outcome)

    def _complain(self, step: Step, outcome: Outcome[list[str] | None]) -> None:
        if sentence := self._complaints.about(step.purpose(self.phase), outcome.error):
            self._commands.append(Say(sentence))

    def _changed(self, step: Step, now: float) -> None:
        self._complaints.clear()
        if step.directory is not None:
            self.directory = step.directory
            if self.phase is Phase.CLAIMING:
                self._grant(now)
        elif step.change is not None:
            self._confirmation.made(step.change)
        elif step.lease is not None and step.lease in self._holding:
            self._observation.see(step.lease, now)
            self._hold(step.lease, now)

    def _job_listed(self, outcome: Outcome[list[str] | None], now: float) -> None:
        if not outcome.done:
            gone = isinstance(outcome.error, NotFound)
            self._look_due = self._retry_at = self._sent_at + self.timing.retry
            if gone and self.phase is not Phase.STANDBY:
                self._overtaken("The job's directory is gone.", now)
            elif gone:
                self._missing = True
            else:
                self._commands.append(Say(f"It cannot list the directory of the job: {outcome.error}"))
            return
        found = names.newest(outcome.result() or [])
        if found != self.directory and self.phase in (Phase.LEADING, Phase.STEPPING_DOWN, Phase.RELEASING):
            by = f"epoch {found.epoch} has begun" if found else "its leader directory is gone"
            self._overtaken(f"It was fenced: {by}.", now)
        self.directory = found
        self._look_from_top = found is None
        self._look_due = now if found else now + self.timing.poll
        if found is None:
            self._commands.append(Say("The job's directory holds no leader directory; it looks again."))

    def _record_listed(self, directory: LeaderDirectory, outcome: Outcome[list[str] | None], now: float) -> None:
        self._looked_at = now
        if not outcome.done:
            self._look_from_top = isinstance(outcome.error, NotFound)
            self._look_due = self._sent_at + self.timing.retry
            if not self._look_from_top:
                self._commands.append(Say(f"It cannot read the record of the job: {outcome.error}"))
            return
        record = Record.parse(outcome.result() or [])
        self._confirmation.see(record.entries)
        self._look_due = now + self.timing.poll if self._look_again else NEVER
        if record.lease is None:
            self._observation.forget()
            self._commands.append(Say(f"The record in {directory.name} holds no lease; it looks again."))
            self._look_due = now + self.timing.poll
            return
        self._observation.see(record.lease, outcome.ended)
        if self.phase is Phase.STANDBY:
            if record.lease in self._holding:
                self._observation.disown(self.session_id)  # seized, as it seems: once more, to be sure
            poll = self._observation.poll_interval(self.attestation)
            self._look_due = now + (self.timing.retry if self._look_again else poll)
            self._observation.check_due = min(self._observation.check_due, now)
        elif record.lease in self._holding:
            self._holding.see(record.lease)
            if record.lease.mode is Mode.RELEASED:
                self._released(now)
        elif record.lease.owner == self.session_id and record.lease.successor:
            self._holding.adopt(record.lease)
            self._asked(record.lease.successor)
        else:
            self._overtaken(f"Its lease was seized by {record.lease.contender}.", now)

    def _asked(self, successor: str) -> None:
        """An operator asks to hand over. Only who leads, or still works, has to be told; others just give it back."""
        if self.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            self._commands.append(Asked(successor))
            return
        self._successor = self._successor or successor
        if self.phase is Phase.CLAIMING:
            self._give_up_at = self._holding.until()
            self.phase = Phase.RELEASING

    def _released(self, now: float) -> None:
        self._held_off_until = now + self.timing.hand_over
        self._lose(now)

    def _hold(self, lease: Lease, now: float) -> None:
        """The lease is in the store to stay, and ours."""
        self._holding.confirm(lease)
        if lease.mode is Mode.RELEASED:
            self._released(now)
        elif self.phase is Phase.STANDBY:
            self.phase = Phase.CLAIMING
            self._look_due = NEVER
            if not self.contending:
                self._release("")
        elif self.phase is Phase.CLAIMING and self.directory and self.directory.session_id == self.session_id:
            self._grant(now)

    def _grant(self, now: float) -> None:
        if now >= self._holding.until() or self.directory is None:
            return  # too late by our own clock: _expire ends it
        self.phase = Phase.LEADING
        self._look_due = NEVER
        self._confirmation.begin(self.directory, self._reason, self.contender)
        self._commands.append(Grant(self.directory.epoch, self.session_id, self._reason))
