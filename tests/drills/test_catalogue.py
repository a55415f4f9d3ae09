"""The catalogue has what people ask for, and the command line shows it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from docker.errors import DockerException
from requests import ReadTimeout

from ha.cli import app
from ha.drill.catalogue import DRILLS
from ha.drill.drill import DURATIONS, Drill
from ha.drill.engine import engine
from ha.drill.ground import Ability, DrillError
from ha.drill.guards import Guard
from ha.drill.outcome import Outcome, Status
from ha.drill.report.writing import read
from ha.history.events import Event
from leader.timing import Timing

GROUPS = {"kills", "network", "zookeeper", "hdfs", "both", "pauses", "machine", "upgrade", "agent"}


def test_every_group_has_drills_and_every_drill_can_be_timed() -> None:
    assert {each.group for each in DRILLS.values()} == GROUPS
    for each in DRILLS.values():
        durations = {**DURATIONS, **each.settings}
        protocol = ("session_timeout", "short_ttl", "long_ttl", "hand_over")
        assert Timing(**{name: durations[name] for name in protocol}).long_ttl == durations["long_ttl"]
        if each.expected.recovery is not None:
            assert each.expected.recovery({**durations, "outage": 1.0}) > 0
            assert each.expected.changes[1] > 0


def test_whoever_cannot_move_a_leader_needs_no_bound() -> None:
    assert all(each.expected.recovery is None for each in DRILLS.values() if each.expected.changes == (0, 0))


def test_list() -> None:
    told = CliRunner().invoke(app, ["drill", "list", "--json"])
    found = {each["name"]: each for each in json.loads(told.stdout)}
    assert list(found) == list(DRILLS)
    assert found["lose-host"]["needs"] == [Ability.HOST.value]
    table = CliRunner().invoke(app, ["drill", "list"])
    assert table.exit_code == 0
    assert all(name in table.stdout for name in DRILLS)


def test_a_name_that_is_not_one() -> None:
    told = CliRunner().invoke(app, ["drill", "run", "kill-sidcar"])
    assert told.exit_code == 2
    assert "There is no drill 'kill-sidcar': did you mean 'kill-sidecar'?" in told.output


def test_nothing_chosen() -> None:
    told = CliRunner().invoke(app, ["drill", "run"])
    assert told.exit_code == 2
    assert "Name some drills, or say --all or --quick" in told.output


def test_containers_without_an_engine_are_reported_as_not_run(tmp_path: Path) -> None:
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    places = ["--folder", f"{tmp_path}/drills", "--report", f"{tmp_path}/report"]
    guards = ["--guard", "hybrid-ha", "--guard", "kazoo"]
    arguments = ["drill", "run", "lose-host", "safe-mode", "--against", "containers", *places, *guards]
    told = CliRunner().invoke(app, arguments, env=nowhere)
    assert told.exit_code == 1
    assert "No Docker engine answers" in told.output
    found = read(tmp_path / "report").outcomes
    assert {(each.drill, each.guard) for each in found} == {
        ("lose-host", "hybrid-ha"),
        ("lose-host", "kazoo"),
        ("safe-mode", "hybrid-ha"),
    }
    assert all(each.status == "skipped" and "No Docker engine answers" in each.reason for each in found)


@pytest.mark.parametrize(
    ("ours", "theirs", "code"), [("passed", "failed", 0), ("failed", "passed", 1), ("skipped", "passed", 1)]
)
def test_what_others_guard_is_no_verdict(
    ours: Status, theirs: Status, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def series(
        drills: Sequence[Drill], _: object, guards: Sequence[Guard], *__: object
    ) -> Iterator[tuple[Outcome, list[Event]]]:
        for guard, status in zip(guards, (ours, theirs), strict=True):
            drill = drills[0]
            yield (
                Outcome(drill=drill.name, title="", group="kills", ground="sandbox", guard=guard.name, status=status),
                [],
            )

    monkeypatch.setattr("ha.drill.series.run_series", series)
    arguments = ["drill", "run", "kill-sidecar", "--against", "sandbox", "--folder", f"{tmp_path}", "--keep"]
    told = CliRunner().invoke(app, [*arguments, "--guard", "hybrid-ha", "--guard", "kazoo"])
    assert told.exit_code == code
    assert [line for line in told.output.splitlines() if line.startswith("kazoo: ")] == [
        f"kazoo: {int(theirs == 'passed')} passed, {int(theirs == 'failed')} failed, 0 skipped"
    ]


@pytest.mark.parametrize("refusal", [DockerException("no such network"), ReadTimeout("60 s")], ids=["docker", "http"])
def test_what_the_engine_refuses_ends_one_drill_and_not_all(refusal: Exception) -> None:
    with pytest.raises(DrillError, match="The Docker engine did not do its part: "), engine():
        raise refusal
