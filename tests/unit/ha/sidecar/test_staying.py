"""``ha run --stay``: a sidecar whose job has ended waits for the next run, so its supervisor starts nothing."""

import json
import signal
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from ha.sandbox.ports import free_ports
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import ENDS, STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

IT_STAYS = "this sidecar stays until the job runs again"
IN_A_POOL = 4
"""Threads by which one moment differs from another: those of the store come with the calls. A run has twice as many."""


def _has_said(sidecar: Program, text: str, times: int) -> bool:
    return sidecar.said.count(text) == times


def _threads(sidecar: Program) -> int:
    return len(list(Path(f"/proc/{sidecar.pid}/task").iterdir()))


@pytest.mark.parametrize(("code", "end"), [("0", "FINISHED"), ("1", "FAILED")])
def test_the_sidecar_of_an_ended_job_stays_alive_until_a_signal(workplace: Workplace, code: str, end: str) -> None:
    (port,) = free_ports(1)
    sidecar = run(
        workplace, "a", ENDS, "--listen", f"127.0.0.1:{port}", "--stay", CODE=code, HA_FAILOVER_MAX_ATTEMPTS="1"
    )
    sidecar.until_said(IT_STAYS)
    assert (state(workplace)[0].epoch, state(workplace)[2]) == (1, [f"status={end}"])
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=PATIENCE_S) as answer:
        assert json.load(answer)["status"] == "ok"
    sidecar.send(signal.SIGTERM)
    assert sidecar.wait() == 128 + signal.SIGTERM


def test_it_stands_by_again_when_the_job_runs_again(workplace: Workplace, notes: Notes) -> None:
    staying = run(workplace, "a", ENDS, "--stay")
    staying.until_said(IT_STAYS)
    other = run(workplace, "b", STAYS, "--again")
    notes.until(2, other)
    staying.until_said("the job runs again")
    other.send(signal.SIGINT)
    assert other.wait() == 128 + signal.SIGINT
    notes.until(4, staying)
    assert [(name, what) for name, what, *_ in notes.all()] == [
        *(("a", "runs"), ("b", "runs"), ("b", "asked"), ("a", "runs"))
    ]


def test_what_a_run_has_taken_it_gives_back(workplace: Workplace, notes: Notes) -> None:
    staying = run(workplace, "a", ENDS, "--stay")
    staying.until_said(IT_STAYS)
    first = _threads(staying)
    for times in (1, 2):
        other = run(workplace, "b", STAYS, "--again")
        notes.until(3 * times - 1, other)
        wait_until(partial(_has_said, staying, "orders: the job runs again", times))
        other.send(signal.SIGINT)
        assert other.wait() == 128 + signal.SIGINT
        wait_until(partial(_has_said, staying, IT_STAYS, times + 1))
    wait_until(
        lambda: _threads(staying) <= first + IN_A_POOL, what=f"no more threads than the {first} of the first run"
    )


def test_a_sidecar_that_is_started_after_the_end_stays_as_well(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", ENDS, "--stay", "--again")
    first.until_said(IT_STAYS)
    second = run(workplace, "b", ENDS, "--stay")
    second.until_said(IT_STAYS)
    assert [name for name, *_ in notes.all()] == ["a"]
    assert state(workplace)[2] == ["status=FINISHED"]
