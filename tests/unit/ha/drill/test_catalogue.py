"""Tests of the catalogue and of its listing on the command line."""

import json
from pathlib import Path
from types import FunctionType

import pytest
from click.testing import CliRunner
from docker.errors import DockerException
from requests import ReadTimeout

from ha.cli import app, exit_code
from ha.drill.catalogue import DRILLS
from ha.drill.container import Contained, on_engine
from ha.drill.container_environment import ContainerEnvironment
from ha.drill.environment import Ability, DrillError
from ha.drill.fixture import DURATIONS
from ha.drill.report import read
from leader.timing import Timing

GROUPS = (
    "kills network zookeeper hdfs both pauses machine upgrade agent hangs crashes queries requests checkpoints clusters"
)


def test_every_group_has_drills_and_every_drill_can_be_timed() -> None:
    assert {each.group for each in DRILLS.values()} == set(GROUPS.split())
    for each in DRILLS.values():
        durations = {**DURATIONS, **each.setup.settings}
        protocol = ("session_timeout", "short_ttl", "long_ttl", "hand_over")
        assert Timing(**{name: durations[name] for name in protocol}).long_ttl == durations["long_ttl"]
        if each.expected.recovery is not None:
            assert each.expected.recovery({**durations, "outage": 1.0}) > 0
            assert each.expected.changes[1] > 0


def test_whoever_cannot_move_a_leader_needs_no_bound() -> None:
    assert all(each.expected.recovery is None for each in DRILLS.values() if each.expected.changes == (0, 0))


def test_list() -> None:
    told = CliRunner().invoke(app, ["lab", "drill", "list", "--json"])
    found = {each["name"]: each for each in json.loads(told.stdout)}
    assert list(found) == list(DRILLS)
    assert found["lose-host"]["needs"] == [Ability.HOST.value]
    table = CliRunner().invoke(app, ["lab", "drill", "list"])
    assert table.exit_code == 0
    assert all(name in table.stdout for name in DRILLS)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["kill-sidcar"], "There is no drill 'kill-sidcar': did you mean 'kill-sidecar'?"),
        ([], "Name some drills, or use --all or --quick"),
    ],
)
def test_a_name_that_is_not_one_and_nothing_chosen(names: list[str], said: str) -> None:
    told = CliRunner().invoke(app, ["lab", "drill", "run", *names])
    assert (told.exit_code, said in told.output) == (2, True)


def test_containers_without_an_engine_are_reported_as_not_run(tmp_path: Path) -> None:
    places = ["--folder", f"{tmp_path}/drills", "--report", f"{tmp_path}/report"]
    arguments = ["lab", "drill", "run", "lose-host", "safe-mode", "--against", "containers", *places]
    told = CliRunner().invoke(app, arguments, env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert told.exit_code == 1
    assert "No Docker engine answers" in told.output
    found = read(tmp_path / "report").outcomes
    assert {(each.drill, each.provider) for each in found} == {("lose-host", "hybrid-ha"), ("safe-mode", "hybrid-ha")}
    assert all(each.status == "skipped" and "No Docker engine answers" in each.reason for each in found)


def test_json_is_the_whole_output_and_the_progress_goes_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    options = ["--against", "containers", "--folder", f"{tmp_path}/drills", "--json"]
    assert exit_code(["lab", "drill", "run", "lose-host", *options]) == 1
    told = capsys.readouterr()
    (outcome,) = json.loads(told.out)
    assert (outcome["drill"], outcome["status"]) == ("lose-host", "skipped")
    assert "No Docker engine answers" in outcome["reason"]
    assert "1 skipped" in told.err


@pytest.mark.parametrize("refusal", [DockerException("no such network"), ReadTimeout("60 s")], ids=["docker", "http"])
def test_what_the_engine_refuses_ends_one_drill_and_not_all(refusal: Exception) -> None:
    @on_engine
    class Refused:
        def asked(self) -> None:
            raise refusal

    with pytest.raises(DrillError, match="The Docker engine did not do its part: "):
        Refused().asked()
    public = [each for kind in (Contained, ContainerEnvironment) for name, each in vars(kind).items() if name[0] != "_"]
    assert all(hasattr(each, "__wrapped__") for each in public if isinstance(each, FunctionType))
