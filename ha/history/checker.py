"""Checker: whether a history keeps the promises that can be seen in it, S1 to S5, R1 and R2.

``docs/protocol.md`` lists the promises. R3, R4, L1 and L2 speak of times at which stores and networks are well. A
history does not say when that was, so the simulator and the drills, which break them, check those themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ha.history.checkpoint_rules import check_checkpoints, check_leaderships, check_lookups
from ha.history.events import Believed, Event, Granted, Revoked, Stored, Suspected, Violation
from leader.layout.lease import Lease, Mode
from leader.layout.names import ADOPTED, RECORD, LeaderDirectory

GUARANTEES = ("S1", "S2", "S3", "S4", "S5", "R1", "R2")


def check(events: Sequence[Event], *, tolerance: float = 0.0) -> list[Violation]:
    """Return every violation of a history that is in order, ordered by time."""
    # `tolerance`: seconds by which the file system's times may differ from the processes'; 0 in a simulation.
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
    if any(isinstance(event, Stored) and "/" not in event.target and event.target for event in events):
        yield from check_leaderships(events, tolerance)


# --- S1: at any instant at most one contender believes that it leads, or that no other can

_BEFORE_ALL = float("-inf")


@dataclass(frozen=True, slots=True)
class BeliefPeriod:
    """A time during which a contender believed that it leads, or that no other can."""

    contender: str
    begins: float
    ends: float


def beliefs(events: Sequence[Event], *, leads: bool) -> Iterator[BeliefPeriod]:
    """Yield the periods of all contenders of one job, in the order in which they ended."""
    # These are beliefs to lead, or else that no other can. A belief counts until its time has run out, even if the
    # process seems gone: it may be paused, and wake up again. If a standby took the process for ended, and was right
    # (no later change of belief), the belief counts until then.
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
    for number, event in enumerate(events):
        if isinstance(event, Suspected) and not _goes_on(events[:number], events[number:], event):
            ends.append(Believed(event.at, event.job, event.contender, None, None))
    # At the same time, an end comes before a beginning: the end is what allowed it.
    return sorted([*ends, *changes], key=lambda each: each.at) if ends else changes


def _goes_on(before: Sequence[Event], after: Sequence[Event], suspected: Suspected) -> bool:
    """Whether the process still says something: a new one of its name first seizes a lease, or takes one up."""
    session = beliefs_end = None
    for event in before:
        if isinstance(event, Granted) and event.contender == suspected.contender:
            session = event.session_id
        elif isinstance(event, Believed) and event.contender == suspected.contender:
            beliefs_end = event.holds_until
    said: list[Believed] = []
    for event in after:
        if not isinstance(event, Believed | Granted | Revoked) or event.contender != suspected.contender:
            continue
        if isinstance(event, Granted):
            said = said[:-1] if said and said[-1].leads_until is not None else said
            break
        if isinstance(event, Revoked):
            if event.session_id == session:
                return True
        elif beliefs_end is not None and event.at < beliefs_end:
            said.append(event)
    return any(each.leads_until is not None for each in said) or (bool(said) and said[0].holds_until is None)


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
    for leads, what in ((True, "believed to lead"), (False, "believed that no other could lead")):
        last: BeliefPeriod | None = None
        for belief in sorted(beliefs(events, leads=leads), key=lambda each: each.begins):
            if last is not None and last.contender != belief.contender and belief.begins < last.ends:
                both = min(last.ends, belief.ends) - belief.begins
                when = f"{last.contender} until {last.ends:.3f}, {belief.contender} from {belief.begins:.3f}"
                sentence = f"{last.contender} and {belief.contender} both {what}, for {both:.3f} s: {when}."
                yield Violation("S1", belief.begins, sentence)
            if last is None or belief.ends > last.ends:
                last = belief


# --- S2 and S3: epochs only grow, and a leader writes only under its own epoch


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
            when = f"epoch {before.epoch} of session {before.session_id} was the present one"
            sentence = f"{event.by or 'Somebody'} renamed {event.path} to {event.target} when {when}."
            yield Violation("S3", event.at, sentence)
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
            before = f"{last.contender} had been granted {last.epoch}"
            yield Violation("S3", event.at, f"{event.contender} was granted epoch {event.epoch} after {before}.")
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
        if not isinstance(event, Stored) or not event.by:
            continue
        top, _, rest = event.path.partition("/")
        directory = LeaderDirectory.parse(top)
        lease = Lease.parse(rest.rpartition("/")[2])
        if directory is None or not rest or lease is not None or event.by == "operator":
            continue
        theirs = owners.get(directory.session_id, ["a session that was not granted yet"])
        if event.by not in theirs:
            whose = " and ".join(theirs)
            yield Violation("S2", event.at, f"{event.by} changed {event.path}, which belongs to {whose}.")


def _moved_between_epochs(events: Sequence[Event]) -> Iterator[Violation]:
    """An entry of one epoch gets into another only with the whole directory, by a claim."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or "/" not in event.target:
            continue
        source, target = (LeaderDirectory.parse(path.partition("/")[0]) for path in (event.path, event.target))
        if target is not None and source is not None and source != target:
            yield Violation("S2", event.at, f"{event.path} of epoch {source.epoch} was moved to {event.target}.")


def _leases(events: Sequence[Event]) -> Iterator[Violation]:
    """A lease grows with every change, names whoever changes it, and gets another session by a seizure alone."""
    for event in events:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
        if before is None or after is None:
            continue
        if event.by not in ("", "operator", after.contender):
            yield Violation("S2", event.at, f"{event.by} changed the lease of {after.contender}.")
        if after.sequence <= before.sequence:
            yield Violation("S3", event.at, f"The lease went from sequence {before.sequence} to {after.sequence}.")
        if before.mode is Mode.RELEASED and before.owner == after.owner and after.mode is not Mode.RELEASED:
            yield Violation("S3", event.at, f"{after.contender} took up a lease that had been given back.")
        if before.owner != after.owner and after.mode is not Mode.HDFS:
            yield Violation("S3", event.at, f"{after.contender} seized a lease in mode {after.mode.value}.")
