"""What the simulator's judge takes for an excuse, on histories that are made by hand."""

from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from ha.history.events import Event, LookedUp
from leader.layout.information import LeaderInformation
from tests.system.simulation.conditions import SETTLING, corrected
from tests.system.simulation.disturbances import Disturbances
from tests.system.simulation.plan import Plan
from tests.system.simulation.publications import Publication
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.system import System

PLAN = Plan(seed=1)
LONG_S = PLAN.audit + PLAN.fresh + 2 * SETTLING
"""After which an old answer is no longer excused."""

OLD, NEW = (
    LeaderInformation(JOB, epoch, str(UUID(int=epoch)), {"jobmaster": f"{name}:6123"})
    for epoch, name in ((1, "a"), (2, "b"))
)
BEGAN_S = 5.0
WOKE_S = BEGAN_S + 3 * LONG_S


def _told(reader: str, at: float, information: LeaderInformation) -> LookedUp:
    return LookedUp(
        at=at, job=JOB, ended=at + 0.01, timeout=2.0, reader=reader, outcome="leader",
        epoch=information.epoch, session_id=information.session_id, endpoints=information.endpoints,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("looked_up_before", "slept", "blamed"),
    [(True, True, 0), (False, True, 1), (True, False, 1)],
    ids=["asleep", "begun as it woke", "awake"],
)
def test_sleep_excuses_a_reader_that_was_there_before_it(looked_up_before: bool, slept: bool, blamed: int) -> None:
    """Also if what it was told before cannot be judged: R50 of the reports, a false alarm on the right protocol."""
    now = [0.0]
    disturbances = Disturbances(lambda: now[0])
    if slept:
        disturbances.begin("reader")
        now[0] = WOKE_S
        disturbances.end("reader")
    history: list[Event] = [_told("reader.1", 1.0, OLD)] if looked_up_before else []
    history.append(_told("reader.1", WOKE_S, OLD))
    system = SimpleNamespace(plan=PLAN, disturbances=disturbances, history=history)
    published = [Publication(0.0, OLD), Publication(BEGAN_S, NEW)]
    found = list(corrected(cast(System, system), published))
    assert [each.guarantee for each in found] == ["R4"] * blamed
