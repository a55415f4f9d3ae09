"""Responses: apply the answers of the file system to an election's state. No I/O.

Only what was acknowledged is held, claimed and believed. A listing only says where the next operation begins.
"""

from collections.abc import Callable

from leader.election.adoption import LEAP, refusal
from leader.election.events import Command, CreateJob, HandOverRequested, ListJob, ListRecord, Log, RequestsFound
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.layout import contact, names
from leader.layout.bar import bar_of, barred_until, bars
from leader.layout.information import Record
from leader.layout.lease import LOOK, PAUSED, Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.pause import present
from leader.timing import PAST
from store.errors import AlreadyExists, HasSnapshots, NotFound, PermissionDenied, StoreError
from store.outcome import Outcome

FilesOutcome = Outcome[list[str] | None]


class Responses:
    """Applies the answers to one election's operations, in the order in which they come."""

    def __init__(self, state: ElectionState, wall: Callable[[], float]) -> None:
        self._state = state
        self._wall = wall
        self._failures = FailureLog()
        # Look like leader directories but hold no lease, while there are others.
        self._forged: set[LeaderDirectory] = set()
        self._several = False  # whether the last list showed more than one leader directory

    def on_response(self, outcome: FilesOutcome, now: float) -> list[Command]:
        """Take the answer to the pending operation and return what follows from it."""
        operation, self._state.pending = self._state.pending, None
        assert operation is not None, "an answer belongs to an operation"
        match operation.command:
            case ListJob():
                return self._job_listed(outcome, now)
            case ListRecord(directory) if directory == self._state.doubted:
                return self._doubted_listed(directory, outcome, now)
            case ListRecord(directory):
                return self._record_listed(directory, outcome, now)
            case CreateJob():
                self._state.job_missing = False
                self._state.schedule.job_created(now, done=outcome.done)
                return self._log_failure(operation, outcome)
            case _ if outcome.done:
                return self._changed(operation, now)
            case _:
                return self._failed(operation, outcome, now)

    # --- changes

    def _changed(self, operation: PendingOperation, now: float) -> list[Command]:
        state = self._state
        self._failures.clear()
        if operation.directory is not None:
            state.directory = operation.directory
            return state.grant(now) if state.phase is Phase.CLAIMING else []
        if operation.change is not None:
            state.announcement.on_made(operation.change)
        elif operation.lease is not None and operation.lease in state.holding:
            state.rival.observe(operation.lease, now)
            return state.hold(operation.lease, now)
        return []

    def _failed(self, operation: PendingOperation, outcome: FilesOutcome, now: float) -> list[Command]:
        """The change was refused, or its outcome is unknown: look at the store, and decide from what it shows."""
        state = self._state
        from_top = isinstance(outcome.error, NotFound) or operation.directory is not None
        state.schedule.change_failed(now, from_top=from_top)
        if operation.change is not None and outcome.refused:
            state.announcement.on_refused(operation.change)
        elif operation.change is not None:
            state.announcement.on_unknown(operation.change)
        return self._log_failure(operation, outcome)

    def _log_failure(self, operation: PendingOperation, outcome: FilesOutcome) -> list[Command]:
        sentence = self._failures.describe(_purpose(operation, self._state), outcome.error)
        return [Log(sentence, warns=isinstance(outcome.error, PermissionDenied | HasSnapshots))] if sentence else []

    # --- looks

    def _job_listed(self, outcome: FilesOutcome, now: float) -> list[Command]:
        state = self._state
        if not outcome.done:
            return self._job_not_listed(outcome.error, now)
        commands: list[Command] = []
        candidates = names.candidates(outcome.result() or [])
        found = self._leader_directory(candidates)
        if found != state.directory and state.phase in (Phase.LEADING, Phase.STEPPING_DOWN, Phase.RELEASING):
            by = f"epoch {found.epoch} has begun" if found else "its leader directory is gone"
            commands += state.lose_to_another(f"It was fenced: {by}.", now)
        state.directory = found
        state.schedule.job_listed(now, found=found is not None)
        if found is None:
            commands.append(Log("The job's directory holds no leader directory; it looks again."))
        elif forged := sorted(set(candidates) & self._forged):
            commands.append(Log(f"{forged[0].name} in the job's directory was made by hand: remove it."))
        return commands

    def _leader_directory(self, candidates: list[LeaderDirectory]) -> LeaderDirectory | None:
        """Choose the leader directory: the highest epoch that is not known to be made by hand."""
        # There is one candidate, unless somebody made others by hand. Those hold no lease, which their next look shows.
        # A leader whose own directory is still there does not give way before that look.
        state = self._state
        self._several = len(candidates) > 1
        self._forged &= set(candidates)
        left = [each for each in candidates if each not in self._forged]
        if not left:  # none holds a lease, or the one that does was taken for another: begin again
            self._forged.clear()
            left = candidates
        highest = next(iter(left), None)
        leads = state.phase in (Phase.LEADING, Phase.STEPPING_DOWN, Phase.RELEASING)
        state.doubted = highest if leads and state.directory in left and highest != state.directory else None
        return state.directory if state.doubted else highest

    def _doubted_listed(self, directory: LeaderDirectory, outcome: FilesOutcome, now: float) -> list[Command]:
        """Another directory beside the own one: with a lease in it, it is another leader's; else it has no owner."""
        state = self._state
        if not outcome.done and not isinstance(outcome.error, NotFound):
            state.schedule.record_not_listed(gone=False)
            return [Log(f"It cannot read {directory.name} in the job's directory: {outcome.error}")]
        state.doubted = None
        if outcome.done and Record.parse(outcome.result() or []).lease is not None:
            state.directory = directory
            return state.lose_to_another(f"It was fenced: epoch {directory.epoch} has begun.", now)
        self._forged.add(directory)
        state.schedule.start_over(now)
        return []

    def _job_not_listed(self, error: StoreError | None, now: float) -> list[Command]:
        self._state.schedule.job_not_listed()
        if not isinstance(error, NotFound):
            return [Log(f"It cannot list the directory of the job: {error}")]
        if self._state.adopting is not None:
            return self._state.give_up_adoption("The job's directory is gone.", now)
        if self._state.phase is not Phase.STANDBY:
            return self._state.lose_to_another("The job's directory is gone.", now)
        self._state.job_missing = True
        return []

    def _record_listed(self, directory: LeaderDirectory, outcome: FilesOutcome, now: float) -> list[Command]:
        state = self._state
        state.schedule.looked_at = now
        if not outcome.done:
            gone = isinstance(outcome.error, NotFound)
            if gone and self._several:
                self._forged.add(directory)
            state.schedule.record_not_listed(gone=gone)
            return [] if gone else [Log(f"It cannot read the record of the job: {outcome.error}")]
        record = Record.parse(outcome.result() or [])
        state.announcement.on_listed(record.entries | contact.entries(record))
        state.schedule.record_listed(now)
        if record.lease is None:
            state.rival.clear()
            state.schedule.record_without_lease(now)
            if self._several:
                self._forged.add(directory)
                state.schedule.look_from_top = True
            return [Log(f"The record in {directory.name} holds no lease; it looks again.")]
        known = state.rival.lease
        state.rival.observe(record.lease, outcome.ended, contact.holders(record, directory))
        said = self._paused(record) + self._barred(record, now)
        if state.adopting is not None:
            return said + self._lease_seen_by_adopter(state.adopting, record.lease, now)
        if state.phase is Phase.STANDBY:
            self._lease_seen_by_standby(known, record.lease, now)
            return said
        return said + self._lease_seen_by_holder(record.lease, now)

    def _paused(self, record: Record) -> list[Command]:
        state, before = self._state, self._state.paused
        state.paused = present(record)
        if state.paused == before:
            return []
        return [Log(f"The job is {state.paused}: no takeover." if state.paused else "The job is not paused now.")]

    def _barred(self, record: Record, now: float) -> list[Command]:
        """Note until when this contender is barred; log the bar, or its end."""
        state, before = self._state, self._state.barred_until
        state.barred_until = barred_until(record, state.contender, now, self._wall())
        if (state.barred_until > now) == (before > PAST):
            return []
        found = bar_of(bars(record), state.contender)
        return [Log(f"This contender is {f'{found}: it does not take over' if found else 'no longer barred'}.")]

    def _lease_seen_by_standby(self, known: Lease | None, lease: Lease, now: float) -> None:
        state = self._state
        if known is not None and known != lease and not lease.renewed_since(known):
            state.schedule.marked(now)
        if lease in state.holding:
            state.rival.abandon(state.session_id)  # our seizure is listed: it is made once more, to be sure
        state.schedule.rival_seen(now, state.rival.poll_interval(state.attestation))
        state.rival.check_unless_watched(now)

    def _lease_seen_by_adopter(self, leader: LeaderDirectory, lease: Lease, now: float) -> list[Command]:
        """The next rename of the lease begins there, if it is still that of the leadership to be taken up."""
        state = self._state
        if refused := refusal(leader, state.directory, lease):
            return state.give_up_adoption(refused, now)
        if lease not in state.holding:
            state.holding.leap(lease.sequence + LEAP)
        state.holding.see(lease)
        return []

    def _lease_seen_by_holder(self, lease: Lease, now: float) -> list[Command]:
        state = self._state
        if lease in state.holding:
            state.holding.see(lease)
            return state.released(now) if lease.mode is Mode.RELEASED else []
        if lease.owner == state.session_id and lease.successor:
            state.holding.adopt(lease)
            told = lease.successor in (LOOK, PAUSED)
            return [RequestsFound()] if told else self._hand_over_requested(lease.successor)
        return state.lose_to_another(f"Its lease was seized by {lease.contender}.", now)

    def _hand_over_requested(self, successor: str) -> list[Command]:
        """An operator asks to hand over. A contender without work to stop gives the lease back by itself."""
        state = self._state
        if state.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            return [HandOverRequested(successor)]
        state.successor = state.successor or successor
        if state.phase is Phase.CLAIMING:
            state.start_release()
        return []


class FailureLog:
    """Remembers the failure that was logged last: each is logged once, until something else happens."""

    def __init__(self) -> None:
        self._last: tuple[str, type[StoreError]] | None = None

    def clear(self) -> None:
        """Something succeeded."""
        self._last = None

    def describe(self, purpose: str, error: StoreError | None) -> str | None:
        """Return a sentence for the log; None if there is nothing new to say."""
        # A change that only came too late is no failure. Errors are compared by type: paths in the text can differ.
        if error is None or isinstance(error, NotFound | AlreadyExists) or self._last == (purpose, type(error)):
            return None
        self._last = (purpose, type(error))
        return f"It could not {purpose}: {error}"


def _purpose(operation: PendingOperation, state: ElectionState) -> str:
    if operation.directory is not None:
        return "claim the leadership"
    if operation.change is not None:
        return "publish what it confirmed"
    if operation.lease is not None:
        standby = "seize the lease" if state.adopting is None else "take up the lease"
        return {Phase.STANDBY: standby, Phase.RELEASING: "give its lease back"}.get(state.phase, "renew its lease")
    return "create the job"
