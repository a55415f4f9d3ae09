"""Checks of R3, R4 and L2, which depend on the disturbances, and of mirrors (OWN: nobody deletes another's)."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import partial

from ha.history.checker import beliefs
from ha.history.events import CheckpointsRead, Copied, Event, Fault, Granted, LookedUp, Stored, Violation
from leader.layout.information import LeaderInformation, decode
from leader.layout.lease import Lease
from leader.layout.znodes import leader_path
from leader.lookup.rate_limit import JOB_PAUSE_S
from leader.timing import PAST
from tests.system.simulation.barred import check_barred
from tests.system.simulation.disturbances import place
from tests.system.simulation.escalated import check_escalated
from tests.system.simulation.fenced import check_fenced, check_granted
from tests.system.simulation.hand_overs import check_hand_overs
from tests.system.simulation.paused import check_paused
from tests.system.simulation.plan import AGENT
from tests.system.simulation.publications import Publication, publications
from tests.system.simulation.requested import check_requested
from tests.system.simulation.retained import check_retained
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.system import System
from tests.system.simulation.zookeeper_hands import FORGED_ADDRESS

SETTLING = 3.0
"""Seconds after a disturbance in which connections are made anew, and a reader does not ask a store that failed."""

VERIFIED_WITHIN = 2 * JOB_PAUSE_S + SETTLING
"""Seconds after HDFS is back within which it has confirmed or refuted what was believed without it."""


def check_conditions(system: System) -> Iterator[Violation]:
    """Yield violations of the promises that depend on the disturbances."""
    published = list(publications(_history(system), JOB))
    yield from _reachable(system, published)
    yield from corrected(system, published)
    yield from _changed(system, published)
    yield from _exchanged(system)
    yield from _gone_back(system, published)
    yield from _copies(system)
    yield from check_fenced(system)
    yield from check_granted(system)
    yield from check_hand_overs(system)
    yield from check_paused(system)
    yield from check_barred(system)
    yield from check_retained(system)
    yield from check_requested(system)
    yield from check_escalated(system)
    if system.plan.calm:
        yield from _calm(system)


def _history(system: System) -> list[Event]:
    """Return what happened to the job that readers look up most."""
    if system.plan.jobs == 1:
        return system.history
    return [event for event in system.history if event.job in ("", JOB)]


def _reachable(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R3: a lookup ends within its deadline, and with a store in reach it succeeds."""
    for event in _history(system):
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
        if event.outcome == "unreachable" and (leader := _copied_throughout(system, published, event)):
            sentence = (
                f"{event.reader} had ZooKeeper in reach, which named {leader}, and was told that no store answers."
            )
            yield Violation("R3", event.ended, sentence)
        shown = system.disturbances.peace(since, event.ended, "journal", *_asked(system, event.reader))
        if event.outcome == "none" and shown and (leader := _led_throughout(system, published, event)):
            yield Violation("R3", event.ended, f"{event.reader} was told that nobody leads while {leader} did.")


def _asked(system: System, reader: str) -> set[str]:
    """Return the names of everything that an answer depends on: the reader, and the way to HDFS of itself or its agent.

    The agent itself is not among them: readers soon ignore one that is gone or asleep.
    """
    hosts = {place(reader), AGENT} if system.plan.agent else {place(reader)}
    return {"files", place(reader), *(f"{host} files" for host in hosts)}


def _led_throughout(system: System, published: list[Publication], event: LookedUp) -> str | None:
    """Return the address that one leader published all the time, if there is one."""
    before = [each for each in published if each.since <= event.at - SETTLING]
    during = [each for each in published if event.at - SETTLING < each.since <= event.ended]
    if during or not before or before[-1].information is None:
        return None
    information = before[-1].information
    contender = information.endpoints["jobmaster"].partition(":")[0]
    for belief in beliefs(_history(system), leads=True):
        if belief.contender == contender and belief.begins <= event.at - SETTLING and belief.ends >= event.ended:
            return contender
    return None


def _copied_throughout(system: System, published: list[Publication], event: LookedUp) -> str | None:
    """Return the leader's name if ZooKeeper was in the reader's reach and held the leader's true record all the time.

    A reader that was told a forgery while HDFS was away may take the truth for old; so may one that HDFS has told of a
    later leader, whom it then forgot.
    """
    host, since = place(event.reader), event.at - SETTLING
    if not system.disturbances.peace(since, event.ended, "zookeeper", f"{host} zookeeper"):
        return None
    leader = _led_throughout(system, published, event)
    if leader is None or not system.disturbances.peace(0.0, event.ended, "journal"):
        return None
    copies = [each for each in system.history if isinstance(each, Copied) and each.path == leader_path(JOB)]
    if any(not each.session for each in copies if each.at <= event.ended):
        return None
    held = [each for each in copies if each.at <= since]
    if not held or held[-1].operation == "delete" or any(since < each.at <= event.ended for each in copies):
        return None
    record = decode(held[-1].data.encode(), JOB)
    return leader if record == published[_last(published, event)].information else None


def _last(published: list[Publication], event: LookedUp) -> int:
    """Return the number of the last publication before a lookup's end."""
    return max(number for number, each in enumerate(published) if each.since <= event.ended)


def corrected(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R4: a stale or forged answer is corrected within the audit interval."""
    bound = system.plan.audit + system.plan.fresh + 2 * SETTLING
    born: dict[str, float] = {}
    for event in _history(system):
        if not isinstance(event, LookedUp) or event.outcome != "leader":
            continue
        begins, host = event.at - bound, place(event.reader)
        first = born.setdefault(event.reader, event.at)  # what befell the process that ran there before is no excuse
        others = _asked(system, event.reader) - {host}
        if begins < 0 or not system.disturbances.peace(begins - SETTLING, event.ended, "journal", *others):
            continue
        if not system.disturbances.peace(max(first, begins - SETTLING), event.ended, host):
            continue
        last = bisect_right(published, begins, key=lambda each: each.since)
        known = [each.information for each in published[:last] if each.information]
        if known and event.epoch < known[-1].epoch:
            newer = known[-1].epoch
            yield Violation(
                "R4", event.ended, f"{event.reader} was told epoch {event.epoch}, long after {newer} began."
            )


def _changed(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R4: so are a leader's former endpoints, from when a reader is told them."""
    bound = system.plan.audit + system.plan.fresh + 2 * SETTLING
    told: dict[str, float] = {}
    for event in _history(system):
        if not isinstance(event, LookedUp) or event.outcome != "leader":
            continue
        last = bisect_right(published, event.at - SETTLING, key=lambda each: each.since)
        known = [each.information for each in published[:last] if each.information][-1:]
        known += [each.information for each in published[last:] if each.since <= event.ended and each.information]
        if not known or event.epoch != known[0].epoch or any(event.endpoints == each.endpoints for each in known):
            told.pop(event.reader, None)
        elif (since := told.setdefault(event.reader, event.at)) < event.at - bound:
            asked = _asked(system, event.reader)
            if system.disturbances.peace(since - SETTLING, event.ended, "journal", *asked):
                old = dict(event.endpoints)
                yield Violation("R4", event.ended, f"{event.reader} was told {old}, long after that had changed.")


def _sorted(endpoints: Mapping[str, str]) -> str:
    return str(sorted(endpoints.items()))


def _exchanged(system: System) -> Iterator[Violation]:
    """R1: an epoch that HDFS has confirmed to a reader keeps its session, whatever ZooKeeper says later."""
    confirmed: dict[tuple[str, int], str] = {}
    for event in _history(system):
        if not isinstance(event, LookedUp) or event.outcome != "leader":
            continue
        known = confirmed.get((event.reader, event.epoch))
        if event.verified and known is None:
            confirmed[event.reader, event.epoch] = event.session_id
        elif known not in (None, event.session_id) and system.disturbances.peace(0.0, event.ended, "journal"):
            sentence = f"{event.reader} was told another session of epoch {event.epoch} than HDFS had confirmed."
            yield Violation("R1", event.ended, sentence)


def _gone_back(system: System, published: list[Publication]) -> Iterator[Violation]:
    """R1: nor does a reader go back to a leader's former endpoints after HDFS has confirmed newer ones."""
    confirmed: dict[tuple[str, int], int] = {}
    numbers_of: dict[tuple[int, str], list[int]] = {}
    for number, each in enumerate(published):
        if each.information is not None:
            known = each.information.epoch, _sorted(each.information.endpoints)
            numbers_of.setdefault(known, []).append(number)
    for event in _history(system):
        if not isinstance(event, LookedUp) or event.outcome != "leader":
            continue
        key = event.reader, event.epoch
        numbers = numbers_of.get((event.epoch, _sorted(event.endpoints)))
        if not numbers or not system.disturbances.peace(0.0, event.ended, "journal"):
            continue
        if numbers[-1] < confirmed.get(key, 0):
            yield Violation("R1", event.ended, f"{event.reader} was told endpoints that it knew to be former ones.")
        elif event.verified:
            confirmed[key] = max(confirmed.get(key, 0), numbers[0])


def judged(system: System) -> list[Event]:
    """Return the history without answers that repeat a forgery, or a listed change that the journal did not have."""
    grants: dict[tuple[int, str], list[Granted]] = {}
    for each in system.history:
        if isinstance(each, Granted):
            grants.setdefault((each.epoch, each.session_id), []).append(each)

    def never_granted(event: Event) -> bool:
        """Whether that was read below a claim that was listed and then forgotten, or that is not granted yet."""
        if not isinstance(event, CheckpointsRead) or system.disturbances.peace(0.0, event.ended, "journal"):
            return False
        return event.epoch > max((each[0].epoch for each in grants.values() if each[0].at <= event.at), default=0)

    def uncommitted(event: Event) -> bool:
        """Whether a real leader was about to publish that when the journal was lost: it may be nowhere now."""
        if not isinstance(event, LookedUp):
            return False
        return any(about_to_publish(event, grant) for grant in grants.get((event.epoch, event.session_id), []))

    def about_to_publish(event: LookedUp, grant: Granted) -> bool:
        theirs = all(address.startswith(f"{grant.contender}:") for address in event.endpoints.values())
        theirs = theirs and grant.at <= event.ended
        return theirs and not system.disturbances.peace(grant.at, event.ended, "journal")

    excused = (partial(_forged, system), uncommitted, never_granted)
    return [event for event in system.history if not any(excuses(event) for excuses in excused)]


def _forged(system: System, event: Event) -> bool:
    """Whether that repeats a forgery that HDFS could not refute: it was away, and has not been back for long."""
    if not isinstance(event, LookedUp) or event.verified or event.endpoints != {"jobmaster": FORGED_ADDRESS}:
        return False
    since = event.at - VERIFIED_WITHIN - system.plan.fresh
    return not system.disturbances.peace(since, event.ended, AGENT, *_asked(system, event.reader))


def _copies(system: System) -> Iterator[Violation]:
    """HDFS is written before ZooKeeper, and nobody deletes a mirror of another session."""
    told: dict[tuple[int, str], LeaderInformation] = {}
    stored = iter(publications(_history(system), JOB))
    following = next(stored, None)
    for event in _history(system):
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
    """L2: an outage, a rolling restart or a wiped ZooKeeper moves no leader and fails no lookup.

    A stranger who deletes a session's node moves no leader either. Until that one renews its lease, which may be only
    when it notices that ZooKeeper is silent, a reader that must ask HDFS takes it for dead.
    """
    grants = [event for event in _history(system) if isinstance(event, Granted) and event.at < system.healed_at]
    for grant in grants[1:]:
        yield Violation("L2", grant.at, f"The leader moved to {grant.contender}, because ZooKeeper was disturbed.")
    first = next((event.at for event in _changes_since_the_first_leader(system)), float("inf"))
    deleted, renewed = False, PAST  # whether a stranger has deleted the node since; when the last such time was over
    for event in _history(system):
        in_calm = first + SETTLING < event.at < system.healed_at
        if isinstance(event, Fault):
            deleted = deleted or event.what.startswith("a stranger deletes")
        elif isinstance(event, Stored) and deleted and Lease.parse(event.target.rpartition("/")[2]):
            deleted, renewed = False, event.at
        elif isinstance(event, LookedUp) and in_calm and event.outcome != "leader":
            if event.outcome == "none" and (deleted or event.at < renewed):
                continue
            yield Violation("L2", event.ended, f"A lookup of {event.reader} failed: {event.outcome}.")


def _changes_since_the_first_leader(system: System) -> Iterator[Stored]:
    """Return the changes after which readers could find the first leader."""
    first = next((each.since for each in publications(_history(system), JOB) if each.information), None)
    for event in _history(system):
        if isinstance(event, Stored) and first is not None and event.at >= first:
            yield event
