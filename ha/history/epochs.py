"""S2 and S3: what the file system executed. Epochs only grow, and nobody writes under an epoch that is not its own."""

from collections.abc import Iterator, Sequence

from ha.history.events import Event, Granted, Stored
from ha.history.violation import Violation
from leader.lease import Lease, Mode
from leader.names import RECORD, LeaderDirectory


def check_epochs(events: Sequence[Event]) -> Iterator[Violation]:
    """Yield each claim, grant or write that breaks S2 or S3; the events are one job's."""
    yield from _claims(events)
    yield from _grants(events)
    yield from _writers(events)
    yield from _smugglers(events)
    yield from _leases(events)


def _claims(events: Sequence[Event]) -> Iterator[Violation]:
    present: LeaderDirectory | None = None
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or "/" in event.target:
            continue
        claimed = LeaderDirectory.parse(event.target)
        if claimed is None:
            continue
        source = LeaderDirectory.parse(event.path)
        before = present or source
        if before is not None and (source != before or claimed.epoch != before.epoch + 1):
            yield Violation(
                "S3",
                event.at,
                f"{event.by or 'Somebody'} renamed {event.path} to {event.target} when epoch {before.epoch} of session "
                f"{before.session_id} was the present one.",
            )
        present = claimed


def _grants(events: Sequence[Event]) -> Iterator[Violation]:
    last: Granted | None = None
    sessions: dict[str, Granted] = {}
    for event in events:
        if not isinstance(event, Granted):
            continue
        if last is not None and event.epoch <= last.epoch:
            yield Violation(
                "S3",
                event.at,
                f"{event.contender} was granted epoch {event.epoch} after {last.contender} had been granted "
                f"{last.epoch}.",
            )
        if event.session_id in sessions:
            yield Violation("S3", event.at, f"Session id {event.session_id} was granted twice.")
        sessions[event.session_id] = event
        last = event


def _writers(events: Sequence[Event]) -> Iterator[Violation]:
    """Where the store says who sent a change: below a leader directory only its own leader writes."""
    owners = {event.session_id: event.contender for event in events if isinstance(event, Granted)}
    for event in events:
        if not isinstance(event, Stored) or not event.by:
            continue
        top, _, rest = event.path.partition("/")
        directory = LeaderDirectory.parse(top)
        lease = Lease.parse(rest.rpartition("/")[2])
        if directory is None or not rest or lease is not None or event.by == "operator":
            continue
        if owners.get(directory.session_id) != event.by:
            yield Violation(
                "S2",
                event.at,
                f"{event.by} changed {event.path}, which belongs to "
                f"{owners.get(directory.session_id, 'a session that was never granted')}.",
            )


def _smugglers(events: Sequence[Event]) -> Iterator[Violation]:
    """What was written under one epoch comes under another only with the whole directory, by a claim."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or "/" not in event.target:
            continue
        source, target = (LeaderDirectory.parse(path.partition("/")[0]) for path in (event.path, event.target))
        if target is not None and source is not None and source != target:
            yield Violation("S2", event.at, f"{event.path} of epoch {source.epoch} was moved to {event.target}.")


def _leases(events: Sequence[Event]) -> Iterator[Violation]:
    """A lease's sequence grows by one with every change, and only a seizure gives it to another session."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
        if before is None or after is None:
            continue
        if after.sequence <= before.sequence:
            yield Violation("S3", event.at, f"The lease went from sequence {before.sequence} to {after.sequence}.")
        if before.owner != after.owner and after.mode is not Mode.HDFS:
            yield Violation("S3", event.at, f"{after.contender} seized a lease in mode {after.mode.value}.")
