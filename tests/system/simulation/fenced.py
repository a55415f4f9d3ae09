"""Check of leases that are over: nobody is granted one (S1), and a leader whose lease was seized stops (FENCE)."""

from collections.abc import Iterator

from ha.history.checker import beliefs
from ha.history.events import Granted, Stored, Violation
from leader.layout.lease import Lease, Mode
from leader.layout.names import ADOPTED, RECORD
from tests.system.simulation.disturbances import place
from tests.system.simulation.system import System


def check_granted(system: System) -> Iterator[Violation]:
    """Yield each grant of a lease that had run out by the clock of its holder, since it was last changed."""
    plan, ends = system.plan, dict[str, float]()
    rates = dict(zip(plan.contenders, plan.rates, strict=True))
    for event in system.history:
        if isinstance(event, Stored) and (lease := Lease.parse(event.target.rpartition("/")[2])) is not None:
            ends[lease.owner] = event.at + lease.ttl * (1 - plan.timing.drift) / rates.get(place(lease.contender), 1.0)
        elif isinstance(event, Granted) and event.reason != ADOPTED and event.at > ends.get(event.session_id, event.at):
            yield Violation("S1", event.at, f"{event.contender} was granted a lease that had run out.")


def check_fenced(system: System) -> Iterator[Violation]:
    """Yield each belief that outlives the seizure of its lease by more than a renewal and the looks after it.

    While clocks keep to the bound there is nothing to find: a belief ends before its lease can be seized.
    """
    if not system.plan.unruly:
        return
    timing = system.plan.timing
    within = timing.renewal + 3 * timing.call_timeout
    believed = list(beliefs(system.history, leads=True))
    for event in system.history:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
        if before is None or after is None or before.mode is not Mode.HDFS or after.contender == before.contender:
            continue
        host, ends = place(before.contender), event.at + within
        if not system.disturbances.peace(event.at, ends, "files", "writes", "journal", host, f"{host} files"):
            continue
        for belief in believed:
            if belief.contender == before.contender and belief.begins < event.at and belief.ends > ends:
                sentence = (
                    f"{after.contender} has seized the lease, and {before.contender} believes for {{:.3f}} s more."
                )
                yield Violation("FENCE", ends, sentence.format(belief.ends - event.at))
