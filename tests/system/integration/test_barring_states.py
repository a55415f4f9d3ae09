"""States of real HDFS that refuse a rename of the protocol: what looks for them finds each that bars a takeover."""

import os
import uuid
from urllib.parse import urlsplit

import pytest
import requests

from leader.layout import tree
from leader.layout.names import RECORD, LeaderDirectory
from leader.layout.tree import NOBODY
from store.errors import Refused
from store.files import Files
from store.open import open_files
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.hdfs]

FIRST = LeaderDirectory(0, NOBODY)

OTHER = "standby"
"""The user of the process that would take over; everybody may write."""

Step = tuple[str, dict[str, str]]
"""Where (the job, its leader directory or that one's record), and WebHDFS's parameters."""

OPEN: list[Step] = [
    (where, {"op": "SETPERMISSION", "permission": "777"}) for where in ("job", "leader", "record", "lease")
]
STATES: dict[str, tuple[list[Step], bool]] = {
    "nothing": ([], False),
    "sticky bit of the job": ([("job", {"op": "SETPERMISSION", "permission": "1777"})], True),
    "sticky bit of the leader directory": ([("leader", {"op": "SETPERMISSION", "permission": "1777"})], False),
    "sticky bit of the record": ([("record", {"op": "SETPERMISSION", "permission": "1777"})], True),
    "access list of the job": (
        [("job", {"op": "SETACL", "aclspec": f"user::rwx,user:{OTHER}:r-x,group::rwx,other::rwx"})],
        True,
    ),
    "access list of the record": (
        [("record", {"op": "SETACL", "aclspec": f"user::rwx,user:{OTHER}:r-x,group::rwx,other::rwx"})],
        True,
    ),
    "quota of names": ([("job", {"op": "SETQUOTA", "namespacequota": "1", "storagespacequota": "-1"})], False),
    "quota of space": ([("job", {"op": "SETQUOTA", "namespacequota": "-1", "storagespacequota": "1"})], False),
    "storage policy": ([("leader", {"op": "SETSTORAGEPOLICY", "storagepolicy": "COLD"})], False),
    "erasure coding": (
        [
            ("root", {"op": "ENABLEECPOLICY", "ecpolicy": "RS-3-2-1024k"}),
            ("leader", {"op": "SETECPOLICY", "ecpolicy": "RS-3-2-1024k"}),
        ],
        False,
    ),
}


def take_over(files: Files, job: str, lease: str) -> str:
    """Rename the lease, then the leader directory, as a takeover does; return what the store says against it."""
    home = f"{job}/{FIRST.name}"
    try:
        files.rename(f"{home}/{RECORD}/{lease}", f"{home}/{RECORD}/{lease}x")
        files.rename(home, f"{job}/1-{NOBODY}")
    except Refused as error:
        return f"{error}"
    return ""


@pytest.mark.parametrize("state", STATES)
def test_what_bars_a_takeover_is_found_before(hdfs_uri: str, webhdfs_uri: str, state: str) -> None:
    job = f"states-{uuid.uuid4().hex[:8]}"
    steps, bars = STATES[state]
    with open_files(hdfs_uri) as files:
        files.call("create", lambda driver: tree.create(driver, job), PATIENCE_S)
        lease = files.call("read", lambda driver: tree.read(driver, job), PATIENCE_S)[1].lease
    assert lease is not None
    leader = f"/{job}/{FIRST.name}"
    record = f"{leader}/{RECORD}"
    paths = {"root": "", "job": f"/{job}", "leader": leader, "record": record, "lease": f"{record}/{lease.name}"}
    root, superuser = urlsplit(webhdfs_uri), os.environ["HADOOP_USER_NAME"]
    for where, parameters in (*OPEN, *steps):
        url = f"http://{root.netloc}/webhdfs/v1{root.path}{paths[where]}"
        answer = requests.put(url, params={**parameters, "user.name": superuser}, timeout=PATIENCE_S)
        assert answer.ok, answer.text
    with open_files(webhdfs_uri, user=OTHER) as files:
        found = files.outcome("probe", lambda driver: tree.check_writable(driver, job), PATIENCE_S).error
        said = files.call("take over", lambda driver: take_over(driver, job, lease.name), PATIENCE_S)
    assert bool(said) == bars, said
    assert bool(found) == bars, found
