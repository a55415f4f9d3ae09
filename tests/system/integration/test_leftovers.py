"""What writers that are killed leave in HDFS: the next leader removes all of it, also what no list of ours shows."""

import os
import subprocess
import sys
import uuid
from urllib.parse import urlsplit

import pytest
import requests

from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.open import open_files
from tests.limits import killed
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.hdfs]

HALVES, KILLS = 2, 40
"""So many kills have to leave half a file, and so many are tried for that."""

LOOKS = 50
"""At what a writer has left, before it is killed."""

WRITER = """
import sys
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.open import open_files

uri, job, epoch, session = sys.argv[1:]
own = FencedDirectory(open_files(uri), job, LeaderDirectory(int(epoch), session), 30.0)
number = 0
while True:
    own.put(b"x" * 30_000_000, f"blobs/b{epoch}-{number}=1", 30_000_000)
    number += 1
    print(number, flush=True)
"""


def everything(webhdfs: str, folder: str) -> list[str]:
    root = urlsplit(webhdfs)
    url = f"http://{root.netloc}/webhdfs/v1{root.path}/{folder}"
    answer = requests.get(
        url, params={"op": "LISTSTATUS", "user.name": os.environ["HADOOP_USER_NAME"]}, timeout=PATIENCE_S
    )
    found = []
    for each in answer.json()["FileStatuses"]["FileStatus"]:
        path = f"{folder}/{each['pathSuffix']}"
        found += [path, *(everything(webhdfs, path) if each["type"] == "DIRECTORY" else ())]
    return found


def test_after_kills_nothing_is_left(hdfs_uri: str, webhdfs_uri: str) -> None:
    job, present, hidden = f"leftovers-{uuid.uuid4().hex[:8]}", LeaderDirectory(0, NOBODY), 0
    with open_files(hdfs_uri) as files:
        files.call("create", lambda driver: tree.create(driver, job), PATIENCE_S)
        for epoch in range(1, KILLS):
            former, present = present, LeaderDirectory(epoch, str(uuid.UUID(int=epoch)))
            source, target = f"{job}/{former.name}", f"{job}/{present.name}"
            files.call("claim", lambda driver, a=source, b=target: driver.rename(a, b), PATIENCE_S)  # type: ignore[misc]
            if hidden >= HALVES:
                break
            command = [sys.executable, "-c", WRITER, hdfs_uri, job, str(epoch), present.session_id]
            with killed(subprocess.Popen(command, stdout=subprocess.PIPE)) as writer:
                assert writer.stdout is not None
                assert writer.stdout.readline()
                for _ in range(LOOKS):  # a file of this size is under way for long enough to be seen
                    if any(".staging" in path for path in everything(webhdfs_uri, f"{job}/{present.name}")):
                        break
            hidden += sum(".staging" in path for path in everything(webhdfs_uri, f"{job}/{present.name}"))
        FencedDirectory(files, job, present, 30.0).put(b"", "blobs/last=1")
        left = [path for path in everything(webhdfs_uri, job) if "/staged/" in path or ".staging" in path]
    assert hidden >= HALVES, "writers are killed in the middle of a file"
    assert left == [f"{job}/{present.name}/staged/{present.epoch}"]
