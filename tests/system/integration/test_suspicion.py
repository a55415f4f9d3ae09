"""Suspicion: the successor of a process that is killed on a live host does not wait for ZooKeeper."""

import json
import logging
from pathlib import Path

import pytest

from store.clock import now
from tests.system.integration.lookups import Lookups
from tests.system.integration.participants import Team, runs
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timed]

SESSION_S = 10.0
ROUNDS = 3

log = logging.getLogger(__name__)


@pytest.fixture(params=["hdfs", "file"])
def settings(request: pytest.FixtureRequest, stores: dict[str, str], tmp_path: Path) -> dict[str, str]:
    files = stores["files"] if request.param == "hdfs" else (tmp_path / "jobs").as_uri()
    return {**stores, "files": files, "session_timeout": f"{SESSION_S:g}"}


def test_daemons_are_killed_one_after_the_other(job: str, tmp_path: Path, settings: dict[str, str]) -> None:
    """Each successor leads while the session of the one before it still lives."""
    with Team(job, tmp_path, settings) as team:
        team.serve("d0")
        team.led_by("d0")
        for number in range(ROUNDS):
            leader, standby = f"d{number}", f"d{number + 1}"
            team.serve(standby)
            until(lambda standby=standby: standby in team.contenders(), f"{standby} contends")  # type: ignore[misc]
            before = team.settle_watched()
            token = team.lease()[1].attestation
            killed = team[leader].kill()
            team.led_by(standby)
            assert team.lives(token), "ZooKeeper has not ended the session of the dead process yet"
            log.info("A killed daemon was succeeded within %.2f s, and the look at it.", now() - killed)
            assert team.lease()[0].epoch == before.epoch + 1
            assert team.reason() == "process-gone"


def test_a_sidecar_is_killed_and_its_command_is_gone_first(job: str, tmp_path: Path, settings: dict[str, str]) -> None:
    with Team(job, tmp_path, settings) as team:
        leader = team.start("a", "b", writes=True)
        before = team.settle_watched()
        token = team.lease()[1].attestation
        with Lookups(job, team.settings) as lookups:
            lookups.come_from("zookeeper")
            command, killed = leader.command, leader.kill()
            team.led_by("b")
            assert team.lives(token)
            assert not runs(command)
            log.info("A killed sidecar was succeeded within %.2f s, and the look at it.", now() - killed)
            until(lambda: team.beats()[-1]["epoch"] == before.epoch + 1, "its command runs")
            until(lambda: lookups.last and lookups.last.leader == "b", "lookups find the successor")
        lookups.check()
        assert [(grant.contender, grant.reason) for grant in team.grants()] == [
            ("a", "released"),
            ("b", "process-gone"),
        ]
        assert team.check_one_at_a_time() == [before.epoch, before.epoch + 1]
        ids = [beat["id"] for beat in team.beats() if isinstance(beat["id"], int)]
        assert ids == sorted(set(ids))
        assert json.loads(team.ha("job", "leader", job, "--json").stdout)["epoch"] == before.epoch + 1


def test_where_it_is_switched_off_the_session_has_to_end(job: str, tmp_path: Path, stores: dict[str, str]) -> None:
    with Team(job, tmp_path, {**stores, "suspicion": "false"}) as team:
        team.serve("a")
        team.led_by("a")
        team.serve("b")
        until(lambda: "b" in team.contenders(), "b contends")
        team.settle()
        assert team.contact() is None, "nothing says where it listens"
        token = team.lease()[1].attestation
        team["a"].kill()
        team.led_by("b")
        assert not team.lives(token)
        assert team.reason() == "session-gone"
