"""Plans that are drawn for one promise each: what chance alone would seldom bring together."""

from collections.abc import Callable

import pytest

from ha.history.events import Violation
from tests.system.simulation.corners import ALL, always
from tests.system.simulation.directed import (
    draw_agent_without_news,
    draw_asked,
    draw_asked_while_dead,
    draw_back_after_a_release,
    draw_back_and_gone,
    draw_back_to_a_forgotten_name,
    draw_barred,
    draw_forged_names,
    draw_forgotten_batches,
    draw_forgotten_release,
    draw_frozen_question,
    draw_lost_switch,
    draw_new_reader_without_hdfs,
    draw_sidecar_back,
)
from tests.system.simulation.escalation_plans import draw_escalated, draw_escalated_back
from tests.system.simulation.lending_plans import draw_lender_lost, draw_node_deleted, draw_parted
from tests.system.simulation.plan import Plan
from tests.system.simulation.reader_plans import (
    draw_agent_wakes,
    draw_dead_and_back,
    draw_forged_at_the_last_moment,
    draw_forged_while_cut_off,
    draw_hasty_without_hdfs,
)
from tests.system.simulation.run import simulate

PLANS = (
    draw_asked,
    draw_asked_while_dead,
    draw_barred,
    draw_escalated,
    draw_escalated_back,
    draw_lender_lost,
    draw_node_deleted,
    draw_parted,
    draw_agent_wakes,
    draw_agent_without_news,
    draw_dead_and_back,
    draw_forged_at_the_last_moment,
    draw_forged_while_cut_off,
    draw_forged_names,
    draw_forgotten_release,
    draw_hasty_without_hdfs,
    draw_back_after_a_release,
    draw_back_and_gone,
    draw_back_to_a_forgotten_name,
    draw_sidecar_back,
    draw_forgotten_batches,
    draw_frozen_question,
    draw_lost_switch,
    draw_new_reader_without_hdfs,
)


EACH = pytest.mark.parametrize("plan", [*PLANS, *map(always, ALL)], ids=[each.__name__ for each in (*PLANS, *ALL)])


@EACH
def test_a_directed_plan_breaks_nothing(plan: Callable[[int], Plan]) -> None:
    assert violations(plan, range(3)) == []


@EACH
def test_many_of_them_break_nothing(plan: Callable[[int], Plan]) -> None:
    assert violations(plan, range(4, 40)) == []


def violations(plan: Callable[[int], Plan], seeds: range) -> list[Violation]:
    return [violation for seed in seeds for violation in simulate(plan(seed)).violations]
