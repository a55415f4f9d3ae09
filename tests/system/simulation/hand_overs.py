"""Check of hand-overs: a lease that was given back is left to the contender for whom it is meant (HAND)."""

from collections.abc import Iterator

from ha.history.events import Stored, Violation
from leader.layout.lease import ANYBODY, Lease, Mode
from leader.layout.names import RECORD
from tests.system.simulation.system import System


def check_hand_overs(system: System) -> Iterator[Violation]:
    """Yield each seizure of a released lease that came sooner than its turn."""
    timing = system.plan.timing
    waits = timing.courtesy / (1 + timing.drift)
    released: dict[str, tuple[Lease, float]] = {}
    for event in system.history:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        lease = Lease.parse(event.target.rpartition("/")[2])
        if lease is None:
            continue
        before, since = released.pop(event.job, (None, 0.0))
        if lease.mode is Mode.RELEASED:
            released[event.job] = lease, event.at
        elif before is not None and event.at - since < waits and not _meant_for(before, lease.contender):
            took = f"{lease.contender} seized it after {event.at - since:.3f} s."
            yield Violation("HAND", event.at, f"A lease was given back for {before.successor}, and {took}")


def _meant_for(lease: Lease, contender: str) -> bool:
    return lease.successor in ("", ANYBODY, contender)
