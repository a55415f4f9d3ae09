"""HDFS faults: a paused NameNode, safe mode, denied permissions and stray files."""

import json
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from ha.sandbox import Sandbox
from leader.layout.names import LeaderDirectory
from store.clock import now
from store.files import Files
from tests.patience import PATIENCE_S
from tests.system.integration.lookups import TIMEOUT_S, Lookups
from tests.system.integration.participants import LASTING, Team
from tests.system.integration.waiting import SLACK_S, pause, until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

STRANGER = "stranger"

log = logging.getLogger(__name__)


@pytest.mark.timed
def test_the_namenode_hangs_for_too_long(job: str, tmp_path: Path, stores: dict[str, str], healed: Sandbox) -> None:
    """A leader that cannot write to HDFS stops its command within the long time to live, though ZooKeeper is well."""
    long_s = 8.0
    with Team(job, tmp_path, {**stores, "long_ttl": f"{long_s}"}) as team:
        leader = team.start("a", "b")
        before = team.settle()
        with Lookups(job, team.settings) as lookups:
            lookups.come_from("zookeeper")
            hung = now()
            healed.pause("namenode-1")
            until(lambda: leader.command == 0, "the command is stopped", long_s + SLACK_S)
            log.info("With the NameNode paused the command ended after %.1f s.", now() - hung)
            revoked = leader.said("revoked")
            until(lambda: lookups.failures, "with both gone, lookups say so", 2 * TIMEOUT_S + SLACK_S)
            healed.resume("namenode-1")
            resumed = now()
            team.led_by("a", "b")
            log.info("Somebody led again %.1f s after the NameNode was resumed.", now() - resumed)
            until(lambda: lookups.last and lookups.last.epoch > before.epoch, "lookups find the new leader")
        assert len(revoked) == 1
        lookups.check_order()
        # As long as the leader lived, ZooKeeper answered for it; then errors named both stores, within the deadline.
        failed = lookups.failures
        assert all(each.failure.startswith("Unreachable: ") for each in failed)
        assert all("ZooKeeper: " in each.failure and "File system: " in each.failure for each in failed), failed[0]
        assert {each.source for each in lookups.all if hung < each.at < failed[0].at and not each.failure} == {
            "zookeeper"
        }
        assert team.lease()[0].epoch > before.epoch
        assert len(team.check_one_at_a_time()) >= 1


@pytest.mark.parametrize("durations", [LASTING], ids=["lasting"])
def test_safe_mode(team: Team, healed: Sandbox) -> None:
    """Writes fail for less than the long time to live: the leader goes on, and all processes log the reason."""
    leader = team.start("a", "b")
    before = team.settle()
    with (
        Lookups(team.job, team.settings, PATIENCE_S) as lookups,
        Team(f"{team.job}-new", team.folder, team.settings) as other,
    ):
        lookups.come_from("zookeeper")
        healed.safe_mode(on=True)
        other.run("c")
        said = until(lambda: other["c"].said("could not be tried yet"), "who would create its job says so")
        assert "safe mode" in said[0]
        until(lambda: leader.said("not renew its lease: SafeMode"), "the leader says that it cannot renew its lease")
        healed.safe_mode(on=False)
        other.led_by("c")
        sequence = team.lease()[1].sequence
        until(lambda: team.lease()[1].sequence > sequence, "the lease is renewed")
        assert len(leader.said("not renew its lease: SafeMode")) == 1
        assert len(leader.said("does not work: SafeMode")) == 1
        assert len(other["c"].said("could not be tried yet")) == 1
    lookups.check()
    assert {each.epoch for each in lookups.all} == {before.epoch}
    assert leader.said("revoked") == []
    assert team.lease()[0] == before
    assert team.check_one_at_a_time() == [before.epoch]


def make(team: Team, operation: Callable[[Files], None]) -> None:
    team.files.call("test", operation, PATIENCE_S)


@pytest.mark.parametrize("durations", [LASTING], ids=["lasting"])
def test_strays(team: Team) -> None:
    """Stray files are ignored everywhere: in the root, the job, its leader directory, its record."""
    leader = team.start("a", "b")
    before = team.settle()
    strays = ("stray", "_temporary", "lease~1~hdfs", "endpoint~broken", "next=", "0000000007", f"17-{uuid.uuid4()}")
    old = LeaderDirectory(0, str(uuid.uuid4())).name
    for folder in ("", team.job, f"{team.job}/{before.name}", f"{team.job}/{before.name}/record"):
        for number, name in enumerate((*strays, old)):
            path = f"{folder}/{name}-{team.job}".lstrip("/") if not folder else f"{folder}/{name}"
            if number % 2:
                make(team, lambda files, path=path: files.make_directory(path))  # type: ignore[misc]
            else:
                make(team, lambda files, path=path: files.write(path, b"not ours"))  # type: ignore[misc]
    with Lookups(team.job, team.settings, PATIENCE_S) as lookups:
        sequence = team.lease()[1].sequence
        assert json.loads(team.ha("job", "leader", team.job, "--json").stdout)["session_id"] == before.session_id
        assert team.ha("job", "list").returncode == 0
        assert [grant.contender for grant in team.grants()] == ["a"]
        moved = team.ha("job", "handover", team.job, "--to", "b")
        assert moved.returncode == 0, moved.stderr
        team.led_by("b")
    lookups.check()
    after, lease = team.lease()
    assert after.epoch == before.epoch + 1
    assert lease.sequence > sequence
    assert set(strays) | {old, after.name} == team.entries()
    assert set(strays) | {old} < team.entries(f"{after.name}/record")
    assert leader.alive


def permit(team: Team, webhdfs_uri: str, path: str, octal: str) -> None:
    address, _, root = webhdfs_uri.removeprefix("webhdfs://").partition("/")
    folder = f"{root}/{team.settings['files'].rpartition('/')[2]}/{path}".rstrip("/")
    question = {"op": "SETPERMISSION", "permission": octal, "user.name": os.environ["HADOOP_USER_NAME"]}
    answer = requests.put(f"http://{address}/webhdfs/v1/{folder}", params=question, timeout=PATIENCE_S)
    answer.raise_for_status()


def statuses(team: Team) -> list[dict[str, Any]]:
    said = team.ha("host", "status", team.job, "--json")
    assert said.returncode == 0, said.stderr
    return [one for process in json.loads(said.stdout) for one in process["jobs"]]


def test_permission_denied(job: str, tmp_path: Path, stores: dict[str, str], webhdfs_uri: str) -> None:
    """A contender without permission says so at once, is shown as not eligible, and leads as soon as it may."""
    root = f"private-{uuid.uuid4().hex[:8]}"
    settings = {**LASTING, **stores, "files": f"{stores['files'].rpartition('/')[0]}/{root}", "directory_mode": "0755"}
    with Team(job, tmp_path, settings) as team:
        leader = team.start("a")
        before = team.settle()

        permit(team, webhdfs_uri, "", "700")
        denied = team.ha("job", "leader", job, HADOOP_USER_NAME=STRANGER, HA_ZOOKEEPER="")
        assert denied.returncode == 4
        assert len(denied.stderr.splitlines()) == 1
        assert f"user={STRANGER}" in denied.stderr
        team.run("b", HADOOP_USER_NAME=STRANGER)
        told = ("whether this host is drained", "not eligible", "could not be tried yet")
        for each in told:
            until(lambda each=each: team["b"].said(each), f"it says: {each}")  # type: ignore[misc]
        pause(1.0)
        assert len(team["b"].said("Permission denied")) == len(told)

        permit(team, webhdfs_uri, "", "755")
        entries = team.entries()
        team.run("c", HADOOP_USER_NAME=STRANGER)
        until(lambda: team["c"].said("not eligible"), "it finds out before it has to take over")
        assert "may not write in" in team["c"].said("not eligible")[0]
        assert "access=WRITE" in team["c"].said("not eligible")[0]
        shown = {one["contender"]: one["not_eligible"] for one in statuses(team)}
        assert shown["a"] is None
        assert "access=WRITE" in shown["c"]
        assert team.entries() == entries, "the check leaves nothing behind"
        team["c"].kill()
        leader.kill()
        until(lambda: not leader.alive, "the leader is dead")
        pause(1.0)
        assert len(team["b"].said("Permission denied")) == len(told), "each once, though it is tried again"
        assert team["b"].alive
        assert team.lease()[0] == before

        for path in (f"{job}/{before.name}/record", f"{job}/{before.name}", job):
            permit(team, webhdfs_uri, path, "777")
        team.led_by("b")
        assert team.lease()[0].epoch == before.epoch + 1
