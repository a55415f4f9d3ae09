"""Takeover times (L1): without ZooKeeper, when it dies too, and on the other file systems."""

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sandbox import Sandbox
from store.clock import now
from tests.system.integration.lookups import Lookups
from tests.system.integration.participants import QUICK, Team
from tests.system.integration.waiting import SLACK_S, until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

SHORT_S = float(QUICK["short_ttl"])
SESSION_S = float(QUICK["session_timeout"])

log = logging.getLogger(__name__)


def succeeded_in_time(team: Team, lookups: Lookups, what: str, killed: float, seconds: float) -> None:
    epoch = team.lease()[0].epoch
    team.led_by("b", seconds=seconds + SLACK_S)
    log.info("%s: succeeded after %.1f s of at most %.1f s.", what, now() - killed, seconds)
    until(lambda: lookups.last and lookups.last.leader == "b", "lookups find the successor")
    lookups.check()
    epochs = {each.epoch for each in lookups.all if each.epoch}
    # The claim may have come before the first look at the epoch above.
    assert epochs in ({epoch, epoch + 1}, {epoch - 1, epoch})
    assert team.lease()[0].epoch == max(epochs)


def test_without_zookeeper(job: str, tmp_path: Path, stores: dict[str, str]) -> None:
    with Team(job, tmp_path, {**stores, "zookeeper": ""}) as team:
        leader = team.start("a", "b")
        with Lookups(job, team.settings) as lookups:
            lookups.come_from("hdfs")
            assert team.mode() == "hdfs"
            killed = leader.kill()
            succeeded_in_time(team, lookups, "Without ZooKeeper", killed, SHORT_S + 1)
        assert team.reason() == "expired"
        until(lambda: team.beats()[-1]["epoch"] == 2, "its command runs")
        assert team.check_one_at_a_time() == [1, 2]


def test_while_zookeeper_is_down(team: Team, healed: Sandbox) -> None:
    leader = team.start("a", "b")
    team.settle_watched()
    with Lookups(team.job, team.settings) as lookups:
        lookups.come_from("zookeeper")
        healed.kill("zookeeper-1")
        until(lambda: team.mode() == "hdfs", "the lease is held without ZooKeeper")
        killed = leader.kill()
        succeeded_in_time(team, lookups, "While ZooKeeper is down", killed, 1)
    assert team.reason() == "process-gone"
    until(lambda: team.beats()[-1]["epoch"] == 2, "its command runs")
    healed.start("zookeeper-1")
    team.settle()
    assert team.lease()[0].epoch == 2
    assert team.check_one_at_a_time() == [1, 2]


def test_leader_and_zookeeper_die_at_once(job: str, tmp_path: Path, stores: dict[str, str], healed: Sandbox) -> None:
    """The lease says that ZooKeeper attests it, and nobody can ask: only the long time to live ends it."""
    long_s = 9.0
    with Team(job, tmp_path, {**stores, "long_ttl": f"{long_s}", "suspicion": "false"}) as team:
        leader = team.start("a", "b")
        with Lookups(job, team.settings) as lookups:
            lookups.come_from("zookeeper")
            killed = leader.kill()
            healed.kill("zookeeper-1")
            assert team.mode() == "zookeeper"
            succeeded_in_time(team, lookups, "With ZooKeeper", killed, long_s + 1)
        assert team.reason() == "expired"
        until(lambda: team.beats()[-1]["epoch"] == 2, "its command runs")
        assert team.check_one_at_a_time() == [1, 2]


def test_over_webhdfs(job: str, tmp_path: Path, stores: dict[str, str], webhdfs_uri: str) -> None:
    """Daemons this time, which lead without running anything; they share the job's tree with users of RPC."""
    with Team(job, tmp_path, {**stores, "files": f"{webhdfs_uri}/integration"}) as team:
        team.serve("a")
        team.led_by("a")
        team.serve("b")
        team.settle()
        with Lookups(job, {**team.settings, **stores}) as lookups:
            lookups.come_from("zookeeper")
            until(lambda: "b" in team.contenders(), "b contends")
            killed = team["a"].kill()
            succeeded_in_time(team, lookups, "Over WebHDFS", killed, SESSION_S + 1)
        team.serve("c")
        until(lambda: "c" in team.contenders(), "c contends")
        assert team.ha("job", "handover", job, "--timeout", "20").returncode == 0
        team.led_by("c")
        assert team["b"].terminate() == 0
        assert team["c"].terminate() == 0
        assert team.mode() == "released"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64k,nr_inodes=26", "tmpfs", str(disk)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False, timeout=120)  # noqa: S607
    if mounted.returncode:
        pytest.skip(f"A full disk cannot be made: only root may mount ({mounted.stderr.strip()}).")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=120)  # noqa: S607


def fill(disk: Path) -> list[Path]:
    """Make entries until there is no room for one more; return them."""
    made: list[Path] = []
    while True:
        path = disk / f"filler-{len(made)}"
        try:
            path.touch()
        except OSError:
            return made
        made.append(path)


def test_a_full_disk(job: str, tmp_path: Path, stores: dict[str, str], small_disk: Path) -> None:
    """Renames need no space, so a leader goes on and can be succeeded. A new job waits, and leaves nothing behind."""
    jobs = small_disk / "jobs"
    settings = {**stores, "files": jobs.as_uri(), "zookeeper": ""}
    with Team(job, tmp_path, settings) as team, Team(f"{job}-new", tmp_path, settings) as other:
        leader = team.start("a", "b")
        until(lambda: team.entries(f"{team.lease()[0].name}/history"), "the history is written")
        fillers = fill(small_disk)
        for _ in range(3):  # some space, so that the creation of a new job stops in the middle
            fillers.pop().unlink()
        with Lookups(job, team.settings) as lookups:
            before = team.lease()[1]
            other.run("c")
            refused = until(lambda: other["c"].said("could not create the job"), "the new job is refused")
            assert "No space left" in refused[0]
            until(lambda: team.lease()[1].sequence > before.sequence + 2, "the lease is renewed on a full disk")
            assert leader.said("revoked") == []
            killed = leader.kill()
            succeeded_in_time(team, lookups, "On a full disk", killed, SHORT_S + 1)
        assert other["c"].alive
        assert other["c"].said("could not create the job") == refused
        for filler in fillers:
            filler.unlink()
        other.led_by("c")
        until(lambda: other["c"].command, "its command runs")
        assert other.lease()[0].epoch == 1
        assert {path.name for path in jobs.iterdir()} == {team.job, other.job}
