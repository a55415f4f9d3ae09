"""Plans that once broke a promise, made small; each is kept for what it showed."""

import pytest

from leader.timing import Timing
from tests.simulation.namespace import Namespace
from tests.simulation.plan import Plan, Step
from tests.simulation.report import report
from tests.simulation.run import simulate

SLOW_SESSION = Timing(short_ttl=4, long_ttl=12, session_timeout=8, call_timeout=1, stop_margin=1, hand_over=0.5)
PLANS = {
    "a session was believed that the quorum was about to end": Plan(
        seed=18, timing=SLOW_SESSION, rates=(1.0, 1.0, 1.0), servers=3, tick=4.0, audit=4.0, jitter=0.02,
        seconds=39.43, steps=(Step(5.236, "pause", "a", 7.144),),
    ),
    "a lookup outlasted its deadline while it asked for the leader's session": Plan(
        seed=18, timing=SLOW_SESSION, rates=(1.0, 1.0, 1.0), readers=2, audit=4.0, seconds=39.43,
        steps=(Step(30.639, "expire", "r1", 0.233),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: f"seed-{plan.seed}-{len(plan.steps)}")
def test_what_once_broke_a_promise_keeps_it(plan: Plan) -> None:
    run = simulate(plan)
    assert not run.violations, report(run)


def test_what_waits_for_a_namenode_is_not_lost_when_another_fails_over_meanwhile() -> None:
    files, arrived = Namespace(), []
    files.stop()
    files.arrive(lambda: arrived.append("first"))
    files.stop()
    files.arrive(lambda: arrived.append("second"))
    files.start()
    assert arrived == ["first", "second"]
