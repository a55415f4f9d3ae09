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
   attested by a ZooKeeper session whose node is gone, seen gone *after* the lease was read, or whose process is.
3. Seize: rename the lease entry to one of our own. From here on the lease is ours, counted from the start of the call.
4. Claim: rename the leader directory to the next epoch and our session id. Every path of the old leader is gone now.
5. Granted, if the lease is still ours by our own clock.

A leader renews the lease by renaming it, and switches its mode the same way: ``zookeeper`` while ZooKeeper attests this
process's session, ``hdfs`` otherwise.
"""

from msgspec import structs

from leader.events import (
    AttestationChecked,
    Attested,
    CheckAttestation,
    Command,
    Confirm,
    Contend,
    CreateJob,
    Event,
    FilesDone,
    ListJob,
    ListRecord,
    Nudge,
    ProcessGone,
    Publish,
    Release,
    Rename,
    StepDown,
    Suspect,
    Tick,
)
from leader.following import Following
from leader.lease import Lease, Mode
from leader.names import RECORD, LeaderDirectory
from leader.observation import NEVER
from leader.standing import AT_ONCE
from leader.step import Phase, Step
from leader.timing import RENEWALS_PER_TTL


class Election(Following):
    """One contender's part in the election of one job's leader."""

    def wake_at(self, now: float) -> float:
        """Boot-clock seconds of the next time something is to be done even if nothing happens."""
        times = [self._look_due, self._held_off_until, self._retry_at]
        if self.phase is Phase.STANDBY:
            times += [self._observation.expiry(), self._observation.check_due]
        elif self.phase is Phase.RELEASING:
            times.append(self._give_up_at)
        else:
            until = self._holding.until()
            times += [until, until - self.timing.stop_margin, self._renewal_due(), self._history_due]
        return min((time for time in times if time > now), default=NEVER)

    # --- the one door

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take an event at a time (boot-clock seconds, never going back) and return what is to be done, in order."""
        self._commands = []
        self._take(event, now)
        self._expire(now)
        self._proceed(now)
        return self._commands

    def _take(self, event: Event, now: float) -> None:  # noqa: C901, PLR0912  # one branch an event
        match event:
            case Tick():
                pass
            case FilesDone(_, outcome):
                self._answered(outcome, now)
            case Attested(attestation):
                if attestation.answers != self.attestation.answers and self.phase is Phase.STANDBY:
                    self._watched_otherwise(now)
                self.attestation = attestation
                self._holding.attest(attestation)
            case AttestationChecked(token, present):
                self._observation.checked(token, present, now)
                if present and self.phase is Phase.STANDBY and not self._look_again:
                    self._look_due = max(self._look_due, now + self._observation.poll_interval(self.attestation))
            case ProcessGone(token):
                self._process_gone(token, now)
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

    def _watched_otherwise(self, now: float) -> None:
        """ZooKeeper begins or ends to watch a lease for this standby: look again, each at a moment of its own.

        A leader need not look: it renews its lease now, and learns from that whatever there is to learn.
        """
        self._observation.doubt(now)
        dice = int(self.session_id[:4], 16) / 0x10000
        self._look_due = min(self._look_due, now + dice * self.timing.renewal)

    def _nudged(self, now: float) -> None:
        self._observation.doubt(now)
        # A look under way may have missed what this is about, and no other answer may put the next one off.
        self._look_again = True
        self._look_soon(now)

    def _process_gone(self, token: str, now: float) -> None:
        if self.rival == token and self._observation.lease is not None:
            self._observation.process_gone()
            self._commands.append(Suspect(self._observation.lease.contender))
            self._look_soon(now)

    def _look_soon(self, now: float) -> None:
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
                return self._renew(now) or self._confirm(now)
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
        released = structs.replace(held, mode=Mode.RELEASED, ttl_ms=0, attestation="", successor=self._successor)
        return self._change(released, now)

    def _confirm(self, now: float) -> Step | None:
        if now < self._history_due and self._confirmation.information is None:
            return None
        change = self._confirmation.next(self.directory) if self.directory else None
        return Step(change.command, change=change) if change else None

    def _wanted(self) -> Lease | None:
        held = self._holding.present
        if held is None:
            return None
        if self.attestation.usable and self.attestation.token is not None:
            token, ttl_ms = self.attestation.token, self.timing.long_ttl_ms
            return structs.replace(held, mode=Mode.ZOOKEEPER, ttl_ms=ttl_ms, attestation=token)
        return structs.replace(held, mode=Mode.HDFS, ttl_ms=self.timing.short_ttl_ms, attestation="")

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
        target = self._holding.pending(wanted) or structs.replace(wanted, sequence=self._holding.next_sequence)
        self._holding.send(target, now)
        return Step(self._rename_lease(held, target), lease=target)

    def _rename_lease(self, source: Lease, target: Lease) -> Rename:
        assert self.directory is not None, "a lease is always read in a directory"
        record = f"{self.directory.name}/{RECORD}"
        return Rename(f"{record}/{source.name}", f"{record}/{target.name}")
