"""The catalogue has what people ask for, and the command line shows it."""

import json

from click.testing import CliRunner

from ha.cli import app
from ha.drill.catalogue import DRILLS
from ha.drill.drill import DURATIONS
from ha.drill.ground import Ability
from leader.timing import Timing

GROUPS = {"kills", "network", "zookeeper", "hdfs", "both", "pauses", "machine", "upgrade"}


def test_every_group_has_drills_and_every_drill_can_be_timed() -> None:
    assert {each.group for each in DRILLS.values()} == GROUPS
    for each in DRILLS.values():
        durations = {**DURATIONS, **each.settings}
        protocol = ("session_timeout", "short_ttl", "long_ttl", "hand_over")
        assert Timing(**{name: durations[name] for name in protocol}).long_ttl == durations["long_ttl"]
        if each.expected.recovery is not None:
            assert each.expected.recovery(durations) > 0
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


def test_containers_without_an_engine(tmp_path: object) -> None:
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    arguments = ["drill", "run", "lose-host", "--against", "containers", "--folder", f"{tmp_path}/drills"]
    told = CliRunner().invoke(app, arguments, env=nowhere)
    assert told.exit_code == 1
    assert "No Docker engine answers" in told.output
