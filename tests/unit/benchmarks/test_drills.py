"""Tests of drills with baselines: the command of the source tree, and the packages for containers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from benchmarks.drills import command
from ha.cli import app
from ha.drill.drill import Drill
from ha.drill.ha_provider import HaProvider
from ha.drill.outcome import DrillOutcome, Status
from ha.drill.report import read
from ha.history.events import Event
from tests.unit.ha.drill.report.synthetic import PLAIN


def test_the_distribution_knows_no_baseline() -> None:
    command()
    told = CliRunner().invoke(app, ["lab", "drill", "run", "kill-sidecar", "--provider", "kazoo"])
    assert told.exit_code == 2
    assert "--provider" not in CliRunner().invoke(app, ["lab", "drill", "run", "--help"]).output


def test_baselines_take_part_only_in_the_drills_that_allow_them(tmp_path: Path) -> None:
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    places = ["--folder", f"{tmp_path}/drills", "--report", f"{tmp_path}/report"]
    providers = ["--provider", "hybrid-ha", "--provider", "kazoo"]
    arguments = ["lose-host", "safe-mode", "--against", "containers", *places, *providers]
    told = CliRunner().invoke(command(), arguments, env=nowhere)
    assert told.exit_code == 1
    assert "No Docker engine answers" in told.output
    found = read(tmp_path / "report").outcomes
    assert {(each.drill, each.provider) for each in found} == {
        ("lose-host", "hybrid-ha"),
        ("lose-host", "kazoo"),
        ("safe-mode", "hybrid-ha"),
    }
    assert all(each.status == "skipped" and "No Docker engine answers" in each.reason for each in found)


@pytest.mark.parametrize(
    ("ours", "theirs", "code"), [("passed", "failed", 0), ("failed", "passed", 1), ("skipped", "passed", 1)]
)
def test_baselines_do_not_count(
    ours: Status, theirs: Status, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def series(
        drills: Sequence[Drill], _: object, providers: Sequence[HaProvider], *__: object
    ) -> Iterator[tuple[DrillOutcome, list[Event]]]:
        for provider, status in zip(providers, (ours, theirs), strict=True):
            yield msgspec.structs.replace(PLAIN, drill=drills[0].name, provider=provider.name, status=status), []

    monkeypatch.setattr("ha.drill.runner.run_series", series)
    arguments = ["kill-sidecar", "--against", "sandbox", "--folder", f"{tmp_path}", "--keep"]
    told = CliRunner().invoke(command(), [*arguments, "--provider", "hybrid-ha", "--provider", "kazoo"])
    assert told.exit_code == code
    assert [line for line in told.output.splitlines() if line.startswith("kazoo: ")] == [
        f"kazoo: {int(theirs == 'passed')} passed, {int(theirs == 'failed')} failed, 0 skipped"
    ]
