"""Steps of a plan: a target that is found by what it does is started again under its own name."""

import pytest

from tests.system.simulation.hands import Hands
from tests.system.simulation.plan import Plan, Step
from tests.system.simulation.system import System


@pytest.mark.parametrize(("target", "lenders"), [("leader", ()), ("lender", ("h0", "h1"))])
def test_what_crashes_as_the_leader_is_started_again_as_itself(target: str, lenders: tuple[str, ...]) -> None:
    system = System(Plan(0, lenders=lenders))
    hands, names = Hands(system), sorted(system.hosts)
    system.world.at(20.0, lambda: hands.take(Step(20.0, "crash", target, 1.0)))
    try:
        system.world.run(25.0)
    finally:
        system.tasks.end()
    assert sorted(system.hosts) == names
    assert all(host.alive for host in system.hosts.values())
