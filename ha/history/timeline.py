"""Timeline: a history for people. It shows beliefs, grants, faults, and the answers that readers got."""

from collections.abc import Iterator, Sequence

from ha.history import events as kinds
from ha.history.events import Event, Violation
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory


def timeline(events: Sequence[Event], violations: Sequence[Violation] = ()) -> Iterator[str]:
    """Yield a line for every change, in order. An event that only confirms the line before has none."""
    lines = [*_event_lines(events), *((each.at, f"!! {each.guarantee}: {each.sentence}") for each in violations)]
    for at, line in sorted(lines, key=lambda timed: timed[0]):
        yield f"{at:10.3f}  {line}"


def _event_lines(events: Sequence[Event]) -> Iterator[tuple[float, str]]:
    leading: dict[str, float] = {}
    answers: dict[str, object] = {}
    completing: dict[str, str] = {}
    for event in events:
        if isinstance(event, kinds.Believed):
            until = event.leads_until or float("-inf")
            led, leading[event.contender] = leading.get(event.contender, float("-inf")), until
            if led < event.at < until:
                yield event.at, f"{event.contender} believes to lead, until {until:.3f}"
            elif until <= event.at < led:
                yield event.at, f"{event.contender} no longer believes to lead"
        elif isinstance(event, kinds.LookedUp):
            answer = (event.outcome, event.epoch, event.session_id, event.source)
            if answers.get(event.reader) != answer:
                answers[event.reader] = answer
                told = f"epoch {event.epoch} by {event.source}" if event.outcome == "leader" else event.outcome
                yield event.ended, f"{event.reader} asked since {event.at:.3f} and was told: {told}"
        elif isinstance(event, kinds.Completed):
            if completing.get(event.query) != event.contender:
                completing[event.query] = event.contender
                yield event.ended, f"{event.contender} completed its first batch of {event.query}: {event.batch}"
        elif line := _line(event):
            yield event.at, line


def _line(event: Event) -> str | None:  # noqa: PLR0911  # one line an event
    match event:
        case kinds.Granted():
            return f"{event.contender} was granted epoch {event.epoch}, session {event.session_id[:8]} ({event.reason})"
        case kinds.Revoked():
            return f"{event.contender} was revoked: {event.reason}"
        case kinds.Published():
            return f"{event.contender} published epoch {event.epoch}"
        case kinds.Suspected():
            return f"{event.by} takes the process of {event.contender} for ended"
        case kinds.Ended():
            return f"{event.contender} ended"
        case kinds.Ran():
            return f"{event.contender}: its command {'runs' if event.running else 'has ended'}"
        case kinds.Fault():
            return f"-- {event.what}"
        case kinds.Stored():
            return _stored(event)
        case kinds.Copied() if not event.path.endswith("/checkpoints"):
            return f"ZooKeeper: session {event.session:x} did {event.operation} {event.path}"
        case _:
            return None


def _stored(event: kinds.Stored) -> str | None:
    who = event.by or "somebody"
    directory = LeaderDirectory.parse(event.target)
    if directory is not None:
        return f"HDFS: {who} claimed epoch {directory.epoch}, session {directory.session_id[:8]}"
    before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
    if before is None or after is None:
        return None
    if before.owner != after.owner:
        return f"HDFS: {who} seized the lease from {before.contender} ({before.mode.value} {before.sequence})"
    if before.mode is not after.mode:
        return f"HDFS: {who} changed the lease from {before.mode.value} to {after.mode.value}"
    if before.paused is not after.paused:
        return f"HDFS: {who} {'paused' if after.paused else 'resumed'} the job"
    return f"HDFS: {who} asked for a hand-over" if after.successor != before.successor else None
