"""Check of pauses: while a job is paused nobody takes over, and only an operator ends the pause (PAUSED)."""

from collections.abc import Iterator

from ha.history.events import Stored, Violation
from leader.layout.lease import Lease
from leader.layout.names import RECORD
from tests.system.simulation.system import System


def check_paused(system: System) -> Iterator[Violation]:
    """Yield each change of a paused job's lease by which another contender takes it, or by which the pause is lost."""
    for event in system.history:
        if not isinstance(event, Stored) or event.operation != "rename" or f"/{RECORD}/" not in event.path:
            continue
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (event.path, event.target))
        if before is None or after is None or not before.paused or event.by == "operator":
            continue
        taken_up = after.owner == before.owner  # by a sidecar that comes back under another name
        if after.contender != before.contender and not taken_up:
            yield Violation("PAUSED", event.at, f"{after.contender} took the lease of a paused job.")
        elif not after.paused:
            yield Violation("PAUSED", event.at, f"{after.contender} ended the pause of its job.")
