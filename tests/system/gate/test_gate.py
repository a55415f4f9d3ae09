"""Whatever stands still, dies or never begins ends the gate within its limit, and is named."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

import pytest

from ha.sandbox import Sandbox
from tests.gate import again, processes, qualify
from tests.gate.__main__ import second_try
from tests.gate.lane import Result
from tests.gate.machine import Watch
from tests.gate.plan import LANES, lane_of, planned
from tests.gate.report import Clock, red
from tests.gate.run import Run
from tests.limits import killed
from tests.stages import STAGES
from tests.system.gate.canaries import fails
from tests.unit.ha.waiting import wait_until

CANARIES = "tests/system/gate/canaries"
CANARY = f"canary-{os.getpid()}"
"""The lane: another one of the gate tries its own at the same time."""
BEFORE_RED_S = 60.0

Gate = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    if processes.RUN not in os.environ:
        monkeypatch.setenv(processes.RUN, processes.own_run())

    def made(**settings: object) -> Run:
        fields = {"beside_s": 3.0, "end_at": time.monotonic() + 120, "say": lambda _: None, **settings}
        return Run(folder=tmp_path, temporary=tmp_path / "temporary", watch=Watch(), **fields)  # type: ignore[arg-type]

    (tmp_path / "temporary").mkdir()
    return made


def of(name: str, *tests: str) -> dict[str, list[str]]:
    return {CANARY: [f"{CANARIES}/{name}.py::{test}" for test in tests]}


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "test", "why"),
    [
        ("killed", "test_is_killed", "DIED: its process was ended by signal 9, while it was in the call of"),
        ("in_setup", "test_hangs_in_setup", "HANGS"),
        ("in_teardown", "test_hangs_in_teardown", "HANGS"),
        ("in_native_code", "test_hangs_in_native_code", "HANGS"),
        ("in_a_pool", "test_hangs_in_a_pool", "HANGS"),
    ],
)
def test_what_dies_or_hangs_ends_the_run_and_is_named(
    name: str, test: str, why: str, run: Gate, tell: Callable[[str], None]
) -> None:
    gate, begun = run(limit_s=2.0), time.monotonic()
    gate.lanes(of(name, test))
    tell(f"canary {name}: red after {time.monotonic() - begun:.0f} s")
    assert why in gate.why
    assert gate.why.partition("\n")[0].endswith(test)
    assert gate.results[f"{CANARIES}/{name}.py::{test}"].outcome == "failed"
    assert not processes.of_lane(os.environ[processes.RUN], CANARY), "nothing of it is left"


@pytest.mark.programs
def test_stacks_are_written_before_a_process_is_ended(run: Gate, tmp_path: Path) -> None:
    said: list[str] = []
    run(limit_s=2.0, say=said.append).lanes(of("in_setup", "test_hangs_in_setup"))
    text = (tmp_path / f"stacks-{CANARY}.txt").read_text()
    assert "in_setup.py" in text
    assert "stuck" in text
    assert any("stuck" in line for line in said)


@pytest.mark.programs
def test_a_test_that_does_not_exist_is_not_run_and_that_is_red(run: Gate) -> None:
    gate, plan = run(), of("in_setup", "test_before", "test_nowhere")
    gate.lanes(plan)
    assert not gate.why
    assert "NOT RUN" in red(gate, plan, [])


@pytest.mark.programs
def test_a_run_that_executes_no_test_is_red(run: Gate) -> None:
    gate = run()
    gate.lanes({})
    assert red(gate, {}, []) == "No test was run."


@pytest.mark.programs
def test_a_session_that_fails_after_its_last_test_is_red(run: Gate) -> None:
    gate = run()
    gate.lanes(of("fails_at_the_end", "test_passes"))
    assert gate.why.startswith(f"Lane {CANARY} DIED: its process has ended with 1")


@pytest.mark.programs
def test_over_its_time_is_red(run: Gate) -> None:
    gate = run(end_at=time.monotonic() + 3)
    gate.lanes(of("in_setup", "test_hangs_in_setup"))
    assert "OVER ITS TIME" in gate.why


@pytest.mark.programs
def test_a_check_that_fails_is_red(run: Gate) -> None:
    with killed(subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"], text=True)) as check:
        check.wait(BEFORE_RED_S)
        gate = run(check=check)
        gate.lanes({})
    assert "linter" in gate.why


@pytest.mark.programs
def test_a_test_that_fails_is_red_and_all_of_its_failures_are_known(run: Gate) -> None:
    gate, plan = run(), of("fails", "test_fails", "test_fails_twice", "test_fails_at_its_end", "test_has_no_limit")
    gate.lanes(plan)
    assert not gate.why
    assert [each.outcome for each in gate.results.values()] == ["failed", "failed", "failed", "passed"]
    _, twice, at_its_end, unlimited = gate.results.values()
    assert "not within" in twice.error
    assert "breaks a promise" in twice.error
    assert "breaks a promise" in at_its_end.error
    assert red(gate, plan, []).startswith("FAILED: tests/system/gate/canaries/fails.py::test_fails, ")
    assert not again.may_be_luck(twice)
    assert unlimited.cores > fails.BURNT_S / 2, "what a test costs counts the programs that it has waited for"


@pytest.mark.programs
def test_what_a_lane_leaves_behind_is_ended_with_it(run: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEFT", str(tmp_path / "left"))
    gate, plan = run(), of("leaves_a_program", "test_leaves_a_program")
    gate.lanes(plan)
    assert not red(gate, plan, [])
    wait_until(lambda: processes.started(int((tmp_path / "left").read_text())) is None)


@pytest.mark.programs
def test_what_a_run_leaves_behind_is_ended_by_the_next_one(tmp_path: Path) -> None:
    with killed(subprocess.Popen([sys.executable, "-c", ""])) as first:
        wait_until(lambda: processes.started(first.pid) is None)  # a zombie is gone as well
        dead = f"{first.pid}-1"
        (tmp_path / f"{processes.FOLDERS}{dead}").mkdir()
        own = tmp_path / f"{processes.FOLDERS}{processes.own_run()}"
        own.mkdir()
        program = [sys.executable, "-c", "input()"]
        with killed(subprocess.Popen(program, stdin=subprocess.PIPE, env={processes.RUN: dead})) as left:
            wait_until(lambda: left.pid in processes.of_run(dead))
            said = processes.end_left(tmp_path)
            assert left.wait(BEFORE_RED_S) == -9
    assert f"ended {left.pid}, left by run {dead}, lane -" in said
    assert [each.name for each in tmp_path.iterdir()] == [own.name]


@pytest.mark.hdfs
def test_a_server_that_stands_still_ends_the_run_and_is_named(run: Gate, tmp_path: Path) -> None:
    own = Sandbox(tmp_path / "own")
    own.up()
    try:
        own.pause("namenode-1")
        gate = run(sandbox=own, ill_s=5.0)
        gate.lanes(of("in_setup", "test_hangs_in_setup"))
    finally:
        own.down(wipe=True)
    assert "namenode-1 is paused" in gate.why


def result(error: str, lane: str = "session", test: str = "tests/system/spark/test_lead.py::test_it") -> Result:
    return Result(test, "failed", 0.0, 1.0, lane, error)


LATE = "AssertionError: not within 120 s: led"


@pytest.mark.parametrize(
    "failed",
    [
        [result(LATE, test="tests/unit/ha/sidecar/test_sidecar.py::test_it")],
        [result("Failed: Timeout (>120.0s) from pytest-timeout.")],
        [result("AssertionError: assert {'call_timeout': 3} == {'call_timeout': 5}")],
        [result("AssertionError: assert 1 == 2")],
        [result("AssertionError: not within 120 s: This history breaks a promise")],
        [result(LATE, test="tests/system/simulation/test_regressions.py::test_it")],
        [result(LATE, test="tests/system/spark/touched.py::test_it")],
        [result(LATE), result("AssertionError: assert 1 == 2")],
        [result(LATE)] * 6,
    ],
)
def test_what_is_never_tried_again(failed: list[Result]) -> None:
    assert again.retried(failed, {"tests/system/spark/touched.py"}) == []


def test_a_time_out_of_a_system_test_is_tried_again() -> None:
    assert again.retried([result(LATE)], set())


class Again(Run):
    """Tries nothing, and says what it was told to say of each test."""

    outcome: Literal["passed", "failed", "skipped"] = "passed"

    def lanes(self, plan: Mapping[str, Sequence[str]]) -> None:
        for ids in plan.values():
            self.results |= {name: Result(name, self.outcome, 0.0, 1.0) for name in ids}


@pytest.mark.parametrize(("outcome", "flaky"), [("passed", 1), ("failed", 0), ("skipped", 0)])
def test_only_who_passes_on_the_second_try_is_flaky(
    outcome: Literal["passed", "failed", "skipped"], flaky: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "touched_lately", set)
    gate = Again(tmp_path, tmp_path, 0.0, Watch(), say=lambda _: None)
    gate.outcome = outcome
    failed = result(LATE)
    gate.results[failed.id] = failed
    assert len(second_try(gate, Clock())) == flaky
    assert bool(red(gate, {"session": [failed.id]}, [])) == (not flaky)


def test_a_test_that_was_flaky_twice_within_14_days_is_red(tmp_path: Path) -> None:
    ledger = tmp_path / "flaky.json"
    again.entered(result(LATE), "abc", date(2026, 11, 1), "quiet", ledger)
    (entry,) = again.known(ledger)
    assert entry["commit"] == "abc"
    assert again.too_often(entry["test"], date(2026, 11, 14), [entry])
    assert not again.too_often(entry["test"], date(2026, 11, 15), [entry])
    assert not again.too_often("another", date(2026, 11, 2), [entry])


def test_each_kind_of_test_has_a_lane() -> None:
    marks = [["hdfs"], ["zookeeper"], ["spark"], ["programs"], ["slow"], []]
    for folder in ("unit/ha", "system/spark", "system/integration", "system/simulation"):
        for each in marks:
            test = {"id": f"tests/{folder}/test_new.py::test_it", "marks": each, "fixtures": []}
            assert any(lane.startswith(lane_of(test)) for lane in LANES), test
            assert sum(map(len, planned([test]).values())) == 1


def test_each_stage_names_tests_that_exist() -> None:
    for name, stage in STAGES.items():
        for begin in stage.tests:
            file, _, test = begin.partition("[")[0].partition("::")
            assert Path(file).exists(), f"{name}: there is no {file}"
            assert not test or f"def {test}" in Path(file).read_text(), f"{name}: there is no {begin}"


def test_the_page_of_stages_is_what_was_recorded() -> None:
    assert qualify.PAGE.read_text() == qualify.page(qualify.read())
