"""``ha preflight``, and the check of ``ha submit`` and ``ha restart``: what is said, what is stored, and exit codes."""

import json
import sys
from pathlib import Path

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark import adopt
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.programs]

ENDS = (sys.executable, "-c", "raise SystemExit('There is no such table.')")


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A job with a checkpoint of one query."""
    checkpoint = until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")
    with ha.lead("orders") as leadership:
        adopt(leadership, "sums", checkpoint.as_uri())
    return "orders"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_job_without_checkpoints_has_nothing_to_check(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["preflight", "new", *words, "--", "no-such-command"]) == 0
    said = capsys.readouterr().out
    if words:
        assert json.loads(said) == {"job": "new", "fits": True, "queries": []}
    else:
        assert said == "new: no query has a checkpoint, so there is nothing to check\n"


def test_what_does_not_fit_is_told_with_what_to_do(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["preflight", job, "--", *ENDS]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "orders: sums DOES NOT FIT",
        "  The program has not started it: it has ended with code 1. There is no such table.",
        "    -> correct the program, or give it what it needs on this host",
    ]
    assert exit_code(["preflight", job, "--json", "--", *ENDS]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["fits"], found["queries"][0]["problems"][0]["kind"]) == (False, "ended")
    assert exit_code(["preflight", job, "--without", "sums", "--", *ENDS]) == 0


def test_mistakes_in_the_command_line_are_told(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert exit_code(["preflight", job, "--file", str(tmp_path / "file")]) == 2
    assert exit_code(["preflight", job, "--timeout", "0", "--", *ENDS]) == 2
    assert exit_code(["preflight", job, "--", "spark-submit", "--deploy-mode", "cluster", "x.py"]) == 2
    assert "--deploy-mode cluster" in capsys.readouterr().err
    assert exit_code(["preflight", job]) == 2, "no program is stored"


def test_a_submit_stores_nothing_that_does_not_fit_unless_it_is_told_to(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["submit", job, "--", *ENDS]) == 1
    assert "so nothing was changed: correct it, or add --no-preflight" in capsys.readouterr().err
    assert exit_code(["submit", job, "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert exit_code(["submit", job, "--no-preflight", "--json", "--", *ENDS]) == 0
    assert not json.loads(capsys.readouterr().out)["checked"]


def test_a_restart_checks_what_was_stored_without_a_check_and_a_roll_back_as_well(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["submit", job, "--no-preflight", "--", *ENDS]) == 0
    assert exit_code(["restart", job]) == 1
    assert "so nothing was changed" in capsys.readouterr().err
    assert exit_code(["submit", job, "--version", "1"]) == 1
    assert "so nothing was changed" in capsys.readouterr().err
    assert exit_code(["restart", job, "--no-preflight"]) == 3, "nobody leads it"
    assert exit_code(["submit", "new", "--", *ENDS]) == 0
    assert exit_code(["preflight", "new"]) == 0, "the stored program, and no checkpoint"
