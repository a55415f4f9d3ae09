"""Workers on real clusters, which learn everything from Spark: their answers and calls through a failover."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ha.jobmaster import GuardedApplication
from tests.limits import joined
from tests.system.spark.cluster import clean_environment, standalone
from tests.system.spark.helpers import leading
from tests.unit.ha.jobmaster.serving import Master, serving

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.spark, pytest.mark.slow]


@contextmanager
def master_url(kind: str, folder: Path) -> Iterator[str]:
    if kind == "standalone":
        with standalone(folder) as address:
            yield address
    else:
        yield kind


def drive(master: str, told: dict[str, str]) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.system.spark.in_workers", master],
        env={**clean_environment(), "TOLD": json.dumps(told)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["standalone", "local-cluster[1,1,512]"])
def test_workers_ask_and_call_through_a_failover(
    kind: str, job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path
) -> None:
    told = {"job": job, "files": hdfs_uri, "zookeeper": zookeeper_hosts, "snapshots": "off"}
    masters: list[Master] = []
    replace = threading.Event()
    with ExitStack() as first, ExitStack() as second, ExitStack() as servers:

        def lead(stack: ExitStack) -> str:
            master = Master(stack.enter_context(leading(job, hdfs_uri, zookeeper_hosts)))
            address = servers.enter_context(serving(GuardedApplication(master, master.leadership)))
            master.leadership.confirm({"jobmaster": address})
            masters.append(master)
            return address

        def succeed() -> None:
            if replace.wait(200) and not over:
                first.close()
                lead(second)

        over: list[bool] = []
        address = lead(first)
        here = masters[0]
        here.meanwhile = lambda: replace.set() if here.executed[-1][0] == "/replace-me" else None
        successor = threading.Thread(target=succeed)
        successor.start()
        try:
            with master_url(kind, tmp_path) as url:
                found = drive(url, {f"spark.ha.{name}": value for name, value in told.items()})
        finally:
            if not replace.is_set():
                over.append(True)
                replace.set()
            joined(successor)

    for way in ("udf", "mapInPandas", "mapInArrow"):
        assert found[way] == [address] * 2, way
    assert found["read"] == [address]
    assert {said for said, _ in found["workers"]} == {address}
    pids = {pid for _, pid in found["workers"]}
    assert len(pids) == 1, "workers are reused"
    assert found["driver"] not in pids
    assert found["failover"]["pid"] in pids
    assert list(found["failover"]["told"]) == ["1", "2"], "the first leader's address, and then the second's"
    assert found["failover"]["by"] == "done by 2"
    first_ones, second_ones = (master.executed for master in masters)
    assert first_ones[:2] == [("/foreachPartition", b"3"), ("/write", b"4")]
    assert first_ones[2][0] == "/replace-me"
    assert [path for path, _ in second_ones] == ["/after"]
