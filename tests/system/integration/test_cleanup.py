"""Cleanup of a job that has ended for good, by its sidecar or by the next one."""

import json
import sys
from pathlib import Path

import pytest

from leader.layout.names import LeaderDirectory
from tests.system.integration.participants import LASTING, Team
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]

ENDS = str(Path(__file__).with_name("ends.py"))


def left(team: Team, directory: LeaderDirectory) -> set[str]:
    return team.entries(directory.name) & {"graph", "blobs", "spark"}


def state(team: Team) -> str:
    return str(
        next(row["state"] for row in json.loads(team.ha("job", "list", "--json").stdout) if row["job"] == team.job)
    )


def trash(team: Team) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(team.ha("trash", "list", team.job, "--json").stdout)
    return rows


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.parametrize(("renames", "rest"), [(2, {"graph", "blobs", "spark"}), (4, {"spark"})])
def test_a_sidecar_killed_while_it_cleans_leaves_the_rest_to_the_next(team: Team, renames: int, rest: set[str]) -> None:
    team.supervise("a", sys.executable, ENDS, str(renames))
    until(lambda: not team["a"].alive, "the first sidecar is dead")
    team["a"].kill()  # which notes that for the history
    assert left(team, team.lease()[0]) == rest
    team.supervise("b", sys.executable, ENDS, "0")
    until(lambda: not team["b"].alive, "the second one has found the job ended")
    directory, _ = team.lease()
    assert directory.epoch == 2
    assert not team["b"].said("the command runs")
    assert team["b"].said("its leftovers are in the trash")
    assert left(team, directory) == set()
    assert [each["folders"] for each in trash(team)] == [["graph", "blobs", "spark"]]
    assert team.entries(f"{directory.name}/results") == {"run-1=clean"}
    assert state(team) == "FINISHED"


@pytest.mark.parametrize("durations", [LASTING], ids=["lasting"])
@pytest.mark.parametrize("cleanup", ["true", "false"])
def test_a_sidecar_cleans_up_if_it_is_told_to(team: Team, cleanup: str) -> None:
    team.supervise("a", sys.executable, ENDS, "0", HA_CLEANUP=cleanup)
    until(lambda: not team["a"].alive, "the job has ended")
    directory, _ = team.lease()
    assert state(team) == "FINISHED"
    assert left(team, directory) == (set() if cleanup == "true" else {"graph", "blobs", "spark"})
    assert len(trash(team)) == (cleanup == "true")
    assert team.entries(f"{directory.name}/results") == {"run-1=clean" if cleanup == "true" else "run-1=dirty"}
