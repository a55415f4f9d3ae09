"""Snapshots of HDFS: in the leader directory they bar every takeover, which is told before; elsewhere they bar none."""

import os
import uuid
from urllib.parse import urlsplit

import pytest
import requests

from leader.layout import tree
from leader.layout.names import SPARK, LeaderDirectory
from leader.layout.tree import NOBODY
from store.errors import HasSnapshots
from store.files import Files
from store.open import open_files
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.hdfs]

FIRST = LeaderDirectory(0, NOBODY)


def ask(webhdfs: str, path: str, operation: str, method: str = "PUT") -> None:
    root = urlsplit(webhdfs)
    url = f"http://{root.netloc}/webhdfs/v1{root.path}/{path}"
    who = {"user.name": os.environ["HADOOP_USER_NAME"]}
    answer = requests.request(method, url, params={"op": operation, "snapshotname": "s", **who}, timeout=PATIENCE_S)
    assert answer.ok, answer.text


@pytest.mark.parametrize("where", ["", f"/{SPARK}"])
@pytest.mark.parametrize("store", ["hdfs", "webhdfs"])
def test_a_snapshot_in_the_leader_directory_is_told(hdfs_uri: str, webhdfs_uri: str, store: str, where: str) -> None:
    job = f"snapshots-{uuid.uuid4().hex[:8]}"

    def check(files: Files) -> None:
        tree.check_writable(files, job)

    def claim(files: Files) -> None:
        files.rename(f"{job}/{FIRST.name}", f"{job}/1-{NOBODY}")

    with open_files(hdfs_uri if store == "hdfs" else webhdfs_uri) as files:
        files.call("create", lambda driver: tree.create(driver, job), PATIENCE_S)
        files.call("probe", check, PATIENCE_S)
        held = f"{job}/{FIRST.name}{where}"
        ask(webhdfs_uri, held, "ALLOWSNAPSHOT")
        ask(webhdfs_uri, held, "CREATESNAPSHOT")
        for action in (check, claim):
            refused = files.outcome("probe", action, PATIENCE_S)
            assert isinstance(refused.error, HasSnapshots), refused.error
            assert f"/{held} NAME`" in str(refused.error)
        ask(webhdfs_uri, held, "DELETESNAPSHOT", "DELETE")
        files.call("probe", check, PATIENCE_S)
        files.call("claim", claim, PATIENCE_S)


def test_a_snapshot_of_the_job_bars_nobody(hdfs_uri: str, webhdfs_uri: str) -> None:
    job = f"snapshots-{uuid.uuid4().hex[:8]}"
    with open_files(hdfs_uri) as files:
        files.call("create", lambda driver: tree.create(driver, job), PATIENCE_S)
        ask(webhdfs_uri, job, "ALLOWSNAPSHOT")
        ask(webhdfs_uri, job, "CREATESNAPSHOT")
        files.call("probe", lambda driver: tree.check_writable(driver, job), PATIENCE_S)
        files.call("claim", lambda driver: driver.rename(f"{job}/{FIRST.name}", f"{job}/1-{NOBODY}"), PATIENCE_S)
        assert [each.name for each in files.call("list", lambda driver: driver.list(job), PATIENCE_S)] == [
            f"1-{NOBODY}"
        ]
