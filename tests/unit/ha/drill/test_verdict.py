"""Tests of the tolerance of drill tests: lateness is excused, errors are not."""

import msgspec
import pytest

from ha.drill.outcome import Check, DrillOutcome
from tests.unit.ha.drill.report.synthetic import PLAIN
from tests.unit.ha.drill.verdict import unsafe, wrong


def outcome(*broken: str, reason: str = "", **measures: float) -> DrillOutcome:
    checks = [Check("the job finished", True, "exit codes a: 0"), *(Check(name, False, "...") for name in broken)]
    return msgspec.structs.replace(PLAIN, status="failed", reason=reason, checks=checks, measures=measures)


@pytest.mark.parametrize(("took", "excused"), [(20.9, True), (21.1, False)])
def test_a_slow_recovery_is_excused_up_to_three_times_its_bound(took: float, excused: bool) -> None:
    found = wrong(outcome("recovered in time", takeover_seconds=took, takeover_bound_seconds=7.0))
    assert (found == []) is excused


@pytest.mark.parametrize(("took", "excused"), [(5.9, True), (6.1, False)])
def test_a_slow_lookup_is_excused_up_to_three_times_its_deadline(took: float, excused: bool) -> None:
    assert (wrong(outcome("lookups keep their deadline", slowest_lookup_seconds=took)) == []) is excused


@pytest.mark.parametrize("name", ["history keeps every guarantee", "every word counted once"])
def test_a_wrong_result_never_is(name: str) -> None:
    assert wrong(outcome(name)) == [f"{name}: ..."]
    assert unsafe(outcome(name))


def test_another_leader_than_expected_is_wrong_and_may_be_the_machines_fault() -> None:
    found = outcome("leader changes as expected")
    assert wrong(found)
    assert not unsafe(found)


def test_a_drill_that_could_not_be_carried_out_is_wrong() -> None:
    assert wrong(outcome(reason="There was no sign of a leader.")) == ["There was no sign of a leader."]
