"""Whole systems under random faults: every promise is kept in every run, and the same seed gives the same run."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.simulation.__main__ import main as soak
from tests.simulation.__main__ import summary
from tests.simulation.many import explore_all
from tests.simulation.plan import CALM, PEERS, STORMY, draw
from tests.simulation.report import report
from tests.simulation.run import simulate

SEEDS = range(3000)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_promise_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    found = explore_all(SEEDS)
    with capsys.disabled():
        sys.stdout.write(f"\n{summary(found)}\n")
    assert not found.violations, report(simulate(draw(min(found.violations))))
    assert found.runs == len(SEEDS)
    # A simulation in which little happens proves little.
    assert found.grants > 2 * found.runs
    assert found.lookups > 10 * found.runs
    done = {kind for kind in found.injected if not kind.startswith("fate")}
    assert done >= {*CALM, *STORMY, *PEERS} - {"fate", "unseat", "expire"}
    assert {kind for kind in found.injected if kind.startswith("fate")} >= {"fate late", "fate lost", "fate dropped"}


def test_a_seed_gives_the_same_run_again() -> None:
    for seed in range(5):
        plan = draw(seed)
        assert plan == draw(seed)
        assert simulate(plan).history == simulate(plan).history


def test_a_plan_can_be_written_down_and_run_again() -> None:
    from leader.timing import Timing  # noqa: PLC0415, F401  # the plan's own words
    from tests.simulation.plan import Plan, Step  # noqa: PLC0415, F401

    for seed in range(20):
        assert eval(repr(draw(seed))) == draw(seed)  # noqa: S307  # our own


def test_what_a_soak_has_found_can_be_written_down(tmp_path: Path) -> None:
    output = tmp_path / "soak.json"
    told = CliRunner().invoke(soak, ["--seeds", "3", "--first", "7", "--output", str(output)])
    assert told.exit_code == 0, told.output
    found = json.loads(output.read_text())
    assert (found["first"], found["runs"], found["violations"]) == (7, 3, {})
    assert sum(found["injected"].values()) > 0
