"""Check of bars: a contender that an operator has barred seizes nothing until its bar ends (BARRED).

The bar counts from the moment in which the operator has changed the lease's name after it: what was decided before that
is refused. A lease of which a contender has heard that it was released is the exception, until its next look.
"""

from collections.abc import Iterator

from ha.history.events import Stored, Violation
from leader.layout.bar import Bar
from leader.layout.lease import Lease, Mode
from leader.layout.names import RECORD
from tests.system.simulation.system import System

SLACK = 1.0
"""Seconds before the end of a bar in which a host's clock may have ended it."""


def check_barred(system: System) -> Iterator[Violation]:
    """Yield each seizure by a contender while its bar lasts."""
    written: list[Bar] = []
    barred: dict[str, int] = {}
    for event in system.history:
        if not isinstance(event, Stored) or f"/{RECORD}/" not in event.path:
            continue
        name = event.path.rpartition("/")[2]
        if event.operation == "make" and (bar := Bar.parse(name)) is not None:
            written.append(bar)
        before, after = Lease.parse(name), Lease.parse(event.target.rpartition("/")[2])
        if before is None or after is None:
            continue
        if event.by == "operator":
            barred |= {each.contender: each.until for each in written}
            continue
        seized = after.owner != before.owner and before.mode is not Mode.RELEASED
        if seized and event.at < barred.get(after.contender, 0) - SLACK:
            yield Violation("BARRED", event.at, f"{after.contender} was barred, and seized the lease.")
