"""Checker: whether a history keeps the promises that can be seen in it, S1 to S5, R1 and R2.

``docs/protocol.md`` lists the promises. R3, R4, L1 and L2 speak of times at which stores and networks are well. A
history does not say when that was, so the simulator and the drills, which break them, check those themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ha.history.answers import published_answers
from ha.history.checkpoints import check_checkpoints
from ha.history.events import Believed, Event, Granted, LookedUp, Published, Stored, Suspected, Violation
from leader.layout.lease import Lease, Mode
from leader.layout.names import ADOPTED, RECORD, LeaderDirectory

GUARANTEES = ("S1", "S2", "S3", "S4", "S5", "R1", "R2")


def check(events: Sequence[Event], *, tolerance: float = 0.0) -> list[Violation]:
    """Return every violation, ordered by time.

    Args:
        events: in the order in which they happened.
        tolerance: seconds by which the file system's times may differ from the processes'; 0 in a simulation.
    """
    jobs = sorted({event.job for event in events} - {""})
    found = [
        violation
        for job in jobs
        for violation in _check_job([each for each in events if each.job == job], job, tolerance)
    ]
    return sorted(found, key=lambda violation: violation.at)


def _check_job(events: Sequence[Event], job: str, tolerance: float) -> Iterator[Violation]:
    yield from check_beliefs(events)
    yield from check_epochs(events)
    yield from check_checkpoints(events, job, tolerance)
    yield from check_lookups(events, tolerance)


# --- S1: at any instant at most one contender believes that it leads, or that nobody else can

_BEFORE_ALL = float("-inf")


@dataclass(frozen=True, slots=True)
class BeliefPeriod:
    """A time during which a contender believed that it leads, or that nobody else can."""

    contender: str
    begins: float
    ends: float


def beliefs(events: Sequence[Event], *, leads: bool) -> Iterator[BeliefPeriod]:
    """Yield the periods of all contenders, in the order in which they ended.

    A belief counts until its time has run out, whatever became of the process: it may be paused, and wake up again.
    If a standby took the process for ended, the belief counts until then, provided that the standby was right: the
    process has changed its belief no more.

    Args:
        events: of one job, in order.
        leads: whether to return beliefs to lead, rather than beliefs that nobody else can.
    """
    present: dict[str, tuple[float, float]] = {}
    for event in _with_ends(events):
        until = event.leads_until if leads else event.holds_until
        began, known = present.get(event.contender, (_BEFORE_ALL, _BEFORE_ALL))
        if event.at < known:  # the old belief had not run out yet
            if until is not None and until > event.at:
                present[event.contender] = began, until
                continue
            yield BeliefPeriod(event.contender, began, event.at)
            del present[event.contender]
        elif known > _BEFORE_ALL:
            yield BeliefPeriod(event.contender, began, known)
            del present[event.contender]
        if until is not None and until > event.at:
            present[event.contender] = event.at, until
    for contender, (began, until) in present.items():
        yield BeliefPeriod(contender, began, until)


def _with_ends(events: Sequence[Event]) -> list[Believed]:
    """Changes of beliefs; where a process was rightly taken for ended, its belief ends as well."""
    changes = [event for event in events if isinstance(event, Believed)]
    ends = list(_adopted(events, changes))
    for event in events:
        if not isinstance(event, Suspected):
            continue
        theirs = [each for each in changes if each.contender == event.contender]
        last = next((each for each in reversed(theirs) if each.at < event.at), None)
        until = _BEFORE_ALL if last is None or last.holds_until is None else last.holds_until
        if not any(event.at <= each.at < until for each in theirs):
            ends.append(Believed(event.at, event.job, event.contender, None, None))
    # At the same time, an end comes before a beginning: the end is what allowed it.
    return sorted([*ends, *changes], key=lambda each: each.at) if ends else changes


def _adopted(events: Sequence[Event], changes: Sequence[Believed]) -> Iterator[Believed]:
    """Where another process took up a leadership, the former one's belief ends, provided that it is dead."""
    holders: dict[str, str] = {}
    for event in events:
        if not isinstance(event, Granted):
            continue
        former, holders[event.session_id] = holders.get(event.session_id), event.contender
        if event.reason != ADOPTED or former in (None, event.contender):
            continue
        own = [each.at for each in changes if each.contender == event.contender and each.at <= event.at]
        since = own[-1] if own else event.at
        if not any(each.contender == former and each.at >= since for each in changes):
            yield Believed(since, event.job, former or "", None, None)


def check_beliefs(events: Sequence[Event]) -> Iterator[Violation]:
    """Yield each overlap of two contenders' beliefs in one job."""
    for leads, what in ((True, "believed to lead"), (False, "believed that nobody else could lead")):
        last: BeliefPeriod | None = None
        for belief in sorted(beliefs(events, leads=leads), key=lambda each: each.begins):
            if last is not None and last.contender != belief.contender and belief.begins < last.ends:
                both = min(last.ends, belief.ends) - belief.begins
                yield Violation(
                    "S1",
                    belief.begins,
                    f"{last.contender} and {belief.contender} both {what}, for {both:.3f} s: {last.contender} until "
                    f"{last.ends:.3f}, {belief.contender} from {belief.begins:.3f}.",
                )
            if last is None or belief.ends > last.ends:
                last = belief


# --- S2 and S3: epochs only grow, and nobody writes under an epoch that is not its own


def check_epochs(events: Sequence[Event]) -> Iterator[Violation]:
    """Yield each claim, grant or write in one job's events that breaks S2 or S3."""
    yield from _claims(events)
    yield from _grants(events)
    yield from _writers(events)
    yield from _moved_between_epochs(events)
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
        if event.reason == ADOPTED:
            if last is None or (event.epoch, event.session_id) != (last.epoch, last.session_id):
                sentence = f"{event.contender} took up epoch {event.epoch}, which was not the last that was granted."
                yield Violation("S3", event.at, sentence)
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
    """Only its own leader writes below a leader directory; checked where the store says who sent a change."""
    owners: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, Granted):
            owners.setdefault(event.session_id, []).append(event.contender)
    for event in events:
        if not isinstance(event, Stored) or not event.by:
            continue
        top, _, rest = event.path.partition("/")
        directory = LeaderDirectory.parse(top)
        lease = Lease.parse(rest.rpartition("/")[2])
        if directory is None or not rest or lease is not None or event.by == "operator":
            continue
        theirs = owners.get(directory.session_id, ["a session that was never granted"])
        if event.by not in theirs:
            yield Violation(
                "S2",
                event.at,
                f"{event.by} changed {event.path}, which belongs to {' and '.join(theirs)}.",
            )


def _moved_between_epochs(events: Sequence[Event]) -> Iterator[Violation]:
    """An entry of one epoch gets into another only with the whole directory, by a claim."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or "/" not in event.target:
            continue
        source, target = (LeaderDirectory.parse(path.partition("/")[0]) for path in (event.path, event.target))
        if target is not None and source is not None and source != target:
            yield Violation("S2", event.at, f"{event.path} of epoch {source.epoch} was moved to {event.target}.")


def _leases(events: Sequence[Event]) -> Iterator[Violation]:
    """A lease's sequence grows with every change, and only a seizure gives the lease to another session."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
        if before is None or after is None:
            continue
        if after.sequence <= before.sequence:
            yield Violation("S3", event.at, f"The lease went from sequence {before.sequence} to {after.sequence}.")
        if before.mode is Mode.RELEASED and before.owner == after.owner and after.mode is not Mode.RELEASED:
            yield Violation("S3", event.at, f"{after.contender} took up a lease that had been given back.")
        if before.owner != after.owner and after.mode is not Mode.HDFS:
            yield Violation("S3", event.at, f"{after.contender} seized a lease in mode {after.mode.value}.")


# --- R1 and R2: a reader is told epochs that never go back, and answers that a real grant has published

_Answer = tuple[int, str, tuple[tuple[str, str], ...]]


def check_lookups(events: Sequence[Event], tolerance: float) -> Iterator[Violation]:
    """Yield each break of R1 and R2 in one job's events.

    Args:
        events: of one job, in order.
        tolerance: seconds by which the file system's times may differ from the readers'.
    """
    lookups = [event for event in events if isinstance(event, LookedUp) and event.outcome == "leader"]
    known = _published(events)
    for event in lookups:
        since = known.get(_answer(event))
        if since is None or since > event.ended + tolerance:
            when = (
                "that was never published" if since is None else f"{since - event.ended:.3f} s before it was published"
            )
            yield Violation(
                "R2", event.ended, f"{event.reader} was told epoch {event.epoch}, {dict(event.endpoints)}, {when}."
            )
    yield from _order([event for event in lookups if _answer(event) in known])


def _answer(event: LookedUp) -> _Answer:
    return event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))


def _published(events: Sequence[Event]) -> dict[_Answer, float]:
    """Every correct answer, and since when it is one: from the file system's changes, else from what leaders said.

    A leader says that it has published when it has been told so. Readers may see it earlier, not before the grant.
    """
    found: dict[_Answer, float] = {}
    granted = {event.session_id: event.at for event in events if isinstance(event, Granted)}
    if any(isinstance(event, Stored) for event in events):
        for answer in published_answers(events):
            if answer.session_id in granted:
                found.setdefault((answer.epoch, answer.session_id, answer.endpoints), answer.since)
        return found
    for event in events:
        if isinstance(event, Published):
            said = event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))
            found.setdefault(said, granted.get(event.session_id, event.at))
    return found


def _order(lookups: Sequence[LookedUp]) -> Iterator[Violation]:
    newest: dict[str, LookedUp] = {}
    for event in sorted(lookups, key=lambda each: each.ended):
        known = newest.get(event.reader)
        if known is not None and event.at >= known.ended:
            if event.epoch < known.epoch:
                yield Violation(
                    "R1", event.ended, f"{event.reader} was told epoch {known.epoch}, and later {event.epoch}."
                )
            elif event.epoch == known.epoch and event.session_id != known.session_id:
                yield Violation("R1", event.ended, f"{event.reader} was told two sessions of epoch {event.epoch}.")
        if known is None or event.epoch >= known.epoch:
            newest[event.reader] = event
