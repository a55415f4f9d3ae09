"""Steps: chooses the next operation on the file system from an election's state. No I/O.

A due look comes first. Then the phase decides: a standby seizes, a contender that holds the lease claims, a leader
renews and announces, and one that steps down renews until it gives the lease back.
"""

from collections.abc import Callable

from msgspec import structs

from leader.election.events import CreateJob, ListJob, ListRecord, Rename
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.layout.lease import LOOK, PAUSED, Lease, Mode
from leader.layout.names import RECORD, LeaderDirectory
from leader.timing import NEVER, PAST, RENEWALS_PER_TTL


class Steps:
    """Chooses operations for one election; it changes only what an operation promises or gives up."""

    def __init__(self, state: ElectionState, new_session_id: Callable[[], str]) -> None:
        self._state = state
        self._new_session_id = new_session_id

    def next(self, now: float) -> PendingOperation | None:
        """The operation to send now; None if there is none."""
        state = self._state
        if state.phase is Phase.STANDBY and not state.contending:
            return None
        if state.job_missing:
            return PendingOperation(CreateJob()) if now >= state.schedule.retry_at else None
        if now >= state.schedule.look_due:
            return self._look()
        return self._act(now) if now >= state.schedule.retry_at and state.directory is not None else None

    def renewal_due(self, now: float) -> float:
        """Boot-clock seconds of the next renewal of the lease that is held, as far as can be said now."""
        holding = self._state.holding
        held = holding.current
        if held is None:
            return NEVER
        if held != holding.present:
            return PAST  # a renewal is listed that was never acknowledged
        if held.mode is Mode.ZOOKEEPER and held != self._wanted(now):
            return PAST
        # The way back to ZooKeeper waits for the next renewal, so that a flapping ZooKeeper costs no extra writes.
        return holding.started(held) + held.ttl / RENEWALS_PER_TTL

    def _look(self) -> PendingOperation:
        state = self._state
        state.schedule.look_again = False
        if state.schedule.look_from_top or state.directory is None:
            return PendingOperation(ListJob())
        return PendingOperation(ListRecord(state.doubted or state.directory))

    def _act(self, now: float) -> PendingOperation | None:
        match self._state.phase:
            case Phase.STANDBY if self._state.adopting is not None:
                return self._change_lease(self._wanted(now), now)
            case Phase.STANDBY:
                return self._seize(now)
            case Phase.CLAIMING:
                return self._claim(now)
            case Phase.LEADING:
                return self._renew(now) or self._announce(now)
            case Phase.STEPPING_DOWN:
                return self._renew(now)
            case Phase.RELEASING:
                return self._give_back(now)

    def seize_unread(self, released: Lease, now: float) -> PendingOperation | None:
        """Seize a lease that is said to be released, without a look; None if it must not be seized now."""
        # A name that says *released* may be seized by anybody, and the rename is executed only if that name is there.
        state = self._state
        if state.directory is None:
            return None
        if now < max(state.schedule.retry_at, state.schedule.held_off_until, state.barred_until):
            return None
        return self._take(released, "released", now)

    def _seize(self, now: float) -> PendingOperation | None:
        state = self._state
        theirs, reason = state.rival.lease, state.rival.expired_reason(now)
        if theirs is None or reason is None or now < max(state.schedule.held_off_until, state.barred_until):
            return None
        if theirs.paused and reason != "own":  # the leader at the time of the pause may lead on, after an outage too
            return None
        return self._take(theirs, reason, now)

    def _take(self, theirs: Lease, reason: str, now: float) -> PendingOperation:
        state = self._state
        # Every try has a session id of its own: an earlier try that is executed late is a lease without a holder.
        state.rival.abandon(state.session_id)
        if theirs not in state.holding:  # otherwise it is our last try once more: listed, but not acknowledged
            state.seize_reason = reason
        state.holding.clear()
        state.session_id = self._new_session_id()
        successor = PAUSED if theirs.paused else ""
        ttl_ms, sequence = state.timing.short_ttl_ms, theirs.sequence + 1
        mine = Lease(sequence, Mode.HDFS, ttl_ms, state.session_id, "", state.contender, successor)
        state.holding.send(mine, now)
        return PendingOperation(self._rename_lease(theirs, mine), lease=mine)

    def _claim(self, now: float) -> PendingOperation | None:
        state = self._state
        if state.directory is None:
            return None
        if state.claim_is_listed:
            # The claim was executed, as it seems. A change below it is acknowledged only if that is true.
            return self._change_lease(self._wanted(now), now)
        mine = LeaderDirectory(state.directory.epoch + 1, state.session_id)
        return PendingOperation(Rename(state.directory.name, mine.name), directory=mine)

    def _renew(self, now: float) -> PendingOperation | None:
        return self._change_lease(self._wanted(now), now) if now >= self.renewal_due(now) else None

    def _announce(self, now: float) -> PendingOperation | None:
        state = self._state
        if now < state.schedule.announcement_due and state.announcement.information is None:
            return None
        change = state.announcement.next_change(state.directory) if state.directory else None
        return PendingOperation(change.command, change=change) if change else None

    def _give_back(self, now: float) -> PendingOperation | None:
        held = self._state.holding.present
        if held is None:
            return None
        successor = PAUSED if held.paused else self._state.successor
        released = structs.replace(held, mode=Mode.RELEASED, ttl_ms=0, attestation="", successor=successor)
        return self._change_lease(released, now)

    # --- changes of a lease that is held

    def _wanted(self, now: float) -> Lease | None:
        """The lease as it should be: attested by ZooKeeper if that can be relied on, else by renewals alone."""
        state = self._state
        held, attestation = state.holding.present, state.attestation
        if held is None:
            return None
        if held.successor == LOOK and state.adopting is None:  # the leader has been told
            held = structs.replace(held, successor="")
        held = structs.replace(held, contender=state.contender)  # it is another one's only if that is being adopted
        if state.attested(now) and attestation.token is not None:
            ttl_ms = state.timing.long_ttl_ms
            return structs.replace(held, mode=Mode.ZOOKEEPER, ttl_ms=ttl_ms, attestation=attestation.token)
        ttl_ms = state.timing.short_ttl_ms if state.adopting is None else state.timing.adopted_ttl_ms
        return structs.replace(held, mode=Mode.HDFS, ttl_ms=ttl_ms, attestation="")

    def _change_lease(self, wanted: Lease | None, now: float) -> PendingOperation | None:
        holding = self._state.holding
        held = holding.present
        if held is None or wanted is None:
            return None
        wanted = structs.replace(wanted, marks=0)  # a change by the holder is a sign of life
        # Others count from the first sight of a release, so one that was shown and forgotten must not come back.
        pending = holding.pending(wanted) if wanted.mode is not Mode.RELEASED else None
        target = pending or structs.replace(wanted, sequence=holding.next_sequence)
        holding.send(target, now)
        return PendingOperation(self._rename_lease(held, target), lease=target)

    def _rename_lease(self, source: Lease, target: Lease) -> Rename:
        directory = self._state.directory
        assert directory is not None, "a lease is always read in a directory"
        record = f"{directory.name}/{RECORD}"
        return Rename(f"{record}/{source.name}", f"{record}/{target.name}")
