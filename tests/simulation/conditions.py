"""R3, R4 and L2, which depend on what was disturbed; and how copies are kept (OWN: nobody deletes another's)."""

from collections.abc import Iterator

from ha.history.beliefs import beliefs
from ha.history.events import CheckpointsRead, Copied, Event, Granted, LookedUp, Stored
from ha.history.tree import Publication, publications
from ha.history.violation import Violation
from leader.information import LeaderInformation, decode
from leader.nodes import leader_path
from tests.simulation.disturbances import place
from tests.simulation.hands import FORGED_SESSION
from tests.simulation.plan import AGENT
from tests.simulation.sidecar import JOB
from tests.simulation.system import System

SETTLING = 3.0
"""Seconds after a disturbance in which connections are made anew, and a reader does not ask a store that failed."""


def check_conditions(system: System) -> Iterator[Violation]:
    """Yield what breaks a promise that depends on what was disturbed."""
    published = list(publications(system.history, JOB))
    yield from _reachable(system, published)
    yield from _corrected(system, published)
    yield from _copies(system)
    if system.plan.calm:
        yield from _calm(system)


def _reachable(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R3: a lookup ends within its deadline, and with a store in reach it succeeds."""
    for event in system.history:
        if not isinstance(event, LookedUp):
            continue
        host, since = place(event.reader), event.at - SETTLING
        if not system.disturbances.peace(since, event.ended, host):
            continue
        if event.ended - event.at > event.timeout + 0.1:
            took = event.ended - event.at
            yield Violation(
                "R3", event.ended, f"{event.reader} waited {took:.3f} s for an answer within {event.timeout}."
            )
        in_reach = system.disturbances.peace(since, event.ended, "files", f"{host} files")
        if event.outcome == "unreachable" and in_reach:
            yield Violation("R3", event.ended, f"{event.reader} had HDFS in reach, and was told that no store answers.")
        shown = system.disturbances.peace(since, event.ended, "journal", *_asked(system, event.reader))
        if event.outcome == "none" and shown and (leader := _led_throughout(system, published, event)):
            yield Violation("R3", event.ended, f"{event.reader} was told that nobody leads while {leader} did.")


def _asked(system: System, reader: str) -> set[str]:
    """Names of all that an answer depends on: the reader, and its own way to HDFS, or that of its agent.

    Not the agent: one that is gone, or asleep, is soon not listened to.
    """
    hosts = {place(reader), AGENT} if system.plan.agent else {place(reader)}
    return {"files", place(reader), *(f"{host} files" for host in hosts)}


def _led_throughout(system: System, published: list[Publication], event: LookedUp) -> str | None:
    """The address that was published all the time by somebody who led all the time, if there is one."""
    before = [each for each in published if each.since <= event.at - SETTLING]
    during = [each for each in published if event.at - SETTLING < each.since <= event.ended]
    if during or not before or before[-1].information is None:
        return None
    information = before[-1].information
    contender = information.endpoints["jobmaster"].partition(":")[0]
    for belief in beliefs(system.history, leads=True):
        if belief.contender == contender and belief.begins <= event.at - SETTLING and belief.ends >= event.ended:
            return contender
    return None


def _corrected(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R4: what is stale, or forged, is corrected within the audit interval."""
    bound = system.plan.audit + system.plan.fresh + 2 * SETTLING
    for event in system.history:
        if not isinstance(event, LookedUp) or event.outcome != "leader":
            continue
        begins = event.at - bound
        if begins < 0 or not system.disturbances.peace(
            begins - SETTLING, event.ended, "journal", *_asked(system, event.reader)
        ):
            continue
        known = [each.information for each in published if each.since <= begins and each.information]
        if known and event.epoch < known[-1].epoch:
            newer = known[-1].epoch
            yield Violation(
                "R4", event.ended, f"{event.reader} was told epoch {event.epoch}, long after {newer} began."
            )


def judged(system: System) -> list[Event]:
    """The history, less the answers that repeat what somebody forged, or what a NameNode showed before its journal."""
    grants = {(each.epoch, each.session_id): each for each in system.history if isinstance(each, Granted)}
    forged = _Forgeries(system)

    def never_granted(event: Event) -> bool:
        """Whether that was read below a claim that was shown and is forgotten, or is yet to be granted."""
        if not isinstance(event, CheckpointsRead) or system.disturbances.peace(0.0, event.ended, "journal"):
            return False
        return event.epoch > max((each.epoch for each in grants.values() if each.at <= event.at), default=0)

    def uncommitted(event: Event) -> bool:
        """Whether a real leader was about to publish that and the journal was lost meanwhile: it may be nowhere now."""
        if not isinstance(event, LookedUp) or (grant := grants.get((event.epoch, event.session_id))) is None:
            return False
        theirs = event.endpoints == {"jobmaster": f"{grant.contender}:6123"} and grant.at <= event.ended
        return theirs and not system.disturbances.peace(grant.at, event.ended, "journal")

    excused = (forged.excused, uncommitted, never_granted)
    return [event for event in system.history if not any(excuses(event) for excuses in excused)]


class _Forgeries:
    """The answers that repeat a forgery before an audit could have found it."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._bound = system.plan.audit + system.plan.fresh + 2 * SETTLING
        self._first: dict[str, float] = {}

    def excused(self, event: Event) -> bool:
        if not isinstance(event, LookedUp) or event.session_id != FORGED_SESSION or event.verified:
            return False
        # A forgery may lie there for long before a reader is told of it: its server was cut off, say. From then on
        # audits count, as long as HDFS is in reach; and once found out it is never believed again.
        since = event.ended - self._bound
        recent = self._first.setdefault(event.reader, event.at) >= since
        asked = _asked(self._system, event.reader)
        return recent or not self._system.disturbances.peace(since - SETTLING, event.ended, *asked)


def _copies(system: System) -> Iterator[Violation]:
    """HDFS is written before ZooKeeper, and nobody deletes a copy that is another session's."""
    told: dict[tuple[int, str], LeaderInformation] = {}
    stored = iter(publications(system.history, JOB))
    following = next(stored, None)
    for event in system.history:
        while following is not None and following.since <= event.at:
            if following.information is not None:
                told[following.information.epoch, _key(following.information)] = following.information
            following = next(stored, None)
        if not isinstance(event, Copied) or not event.session:
            continue
        if event.operation == "delete" and event.owner not in (0, event.session):
            yield Violation(
                "OWN", event.at, f"Session {event.session:x} deleted {event.path} of session {event.owner:x}."
            )
        if event.operation != "delete" and event.path == leader_path(JOB):
            copied = decode(event.data.encode(), JOB)
            if copied is not None and (copied.epoch, _key(copied)) not in told:
                sentence = f"Epoch {copied.epoch} was written to ZooKeeper before it was in HDFS."
                yield Violation("R2", event.at, sentence)


def _key(information: LeaderInformation) -> str:
    return f"{information.session_id} {information.version} {sorted(information.endpoints.items())}"


def _calm(system: System) -> Iterator[Violation]:
    """L2: an outage, a rolling restart or a wiped ZooKeeper moves no leader and fails no lookup."""
    grants = [event for event in system.history if isinstance(event, Granted) and event.at < system.healed_at]
    for grant in grants[1:]:
        yield Violation("L2", grant.at, f"The leader moved to {grant.contender}, because ZooKeeper was disturbed.")
    first = next((event.at for event in _changes_since_the_first_leader(system)), float("inf"))
    for event in system.history:
        in_calm = first + SETTLING < event.at < system.healed_at
        if isinstance(event, LookedUp) and in_calm and event.outcome != "leader":
            yield Violation("L2", event.ended, f"A lookup of {event.reader} failed: {event.outcome}.")


def _changes_since_the_first_leader(system: System) -> Iterator[Stored]:
    """The changes after which readers could find the first leader."""
    first = next((each.since for each in publications(system.history, JOB) if each.information), None)
    for event in system.history:
        if isinstance(event, Stored) and first is not None and event.at >= first:
            yield event
