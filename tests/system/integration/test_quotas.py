"""Quotas of real HDFS: a verb that finds one used up says which, and how it is raised; a repeat does it."""

import os
import uuid
from urllib.parse import urlsplit

import pytest
import requests

from ha.verbs.asking import ask
from leader.job.admin import JobAdmin
from leader.job.request_folder import State
from leader.layout import tree
from leader.layout.pause import present
from store.errors import NoSpace
from store.open import open_files
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.hdfs]

NONE = -1


def limit(webhdfs: str, path: str, names: int = NONE, space: int = NONE) -> None:
    root = urlsplit(webhdfs)
    url = f"http://{root.netloc}/webhdfs/v1{root.path}/{path}"
    given: dict[str, str | int] = {"op": "SETQUOTA", "namespacequota": names, "storagespacequota": space}
    answer = requests.put(url, params={**given, "user.name": os.environ["HADOOP_USER_NAME"]}, timeout=PATIENCE_S)
    assert answer.ok, answer.text


@pytest.mark.parametrize("store", ["hdfs", "webhdfs"])
def test_a_pause_under_a_quota_is_done_or_refused_in_words(hdfs_uri: str, webhdfs_uri: str, store: str) -> None:
    job = f"quotas-{uuid.uuid4().hex[:8]}"
    with open_files(hdfs_uri if store == "hdfs" else webhdfs_uri) as files:
        files.call("create", lambda driver: tree.create(driver, job), PATIENCE_S)
        admin = JobAdmin(files, None, 30)
        limit(webhdfs_uri, job, names=2)
        with pytest.raises(NoSpace, match=rf"raise the quota with `hdfs dfsadmin -setQuota NUMBER /\S*{job}`"):
            ask(admin, job, "pause", None, "me")
        assert present(admin.record(job)[1]) is None
        limit(webhdfs_uri, job, space=1)
        paused = ask(admin, job, "pause", None, "me")
        assert paused.state is State.DONE
        assert "could not be noted: DSQuotaExceededException" in paused.said
        assert "`hdfs dfsadmin -setSpaceQuota BYTES /" in paused.said
        assert present(admin.record(job)[1]) is not None
