"""The cost of file operations for the NameNode, as counted here and by the NameNode itself; listeners to calls."""

import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from leader.layout import tree as job_tree
from leader.layout.names import LeaderDirectory
from store import counting
from store.counting import REQUESTS, CountedFiles, listen
from store.errors import NotFound, NotSent
from store.files import Files
from store.local import LocalFiles
from store.open import driver_of, open_files
from store.outcome import Outcome
from store.zookeeper import Get, ZooKeeper
from tests.unit.ha.waiting import wait_until


class Cost:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __call__(self, operation: str, requests: int) -> None:
        self.counted[operation] += requests


OPERATIONS: dict[str, Callable[[Files], object]] = {
    "make_root": lambda files: files.make_root(),
    "make_directory": lambda files: files.make_directory("a"),
    "rename": lambda files: files.rename("a", "b"),
    "list": lambda files: files.list(""),
    "write": lambda files: files.write("b/c", b"0123456789"),
    "read": lambda files: files.read("b/c", 100),
    "delete": lambda files: files.delete("b", recursive=True),
}
"""Each operation once, in an order that works."""


def every_operation(files: Files) -> None:
    for operation in OPERATIONS.values():
        operation(files)


@pytest.mark.parametrize("scheme", REQUESTS)
def test_each_operation_is_reported_with_its_cost(tmp_path: Path, scheme: str) -> None:
    cost = Cost()
    files = CountedFiles(LocalFiles(tmp_path / "root"), REQUESTS[scheme], cost)
    every_operation(files)
    assert OPERATIONS.keys() == REQUESTS[scheme].keys()
    assert cost.counted == REQUESTS[scheme]


def test_a_refused_operation_costs_as_much(tmp_path: Path) -> None:
    cost = Cost()
    files = CountedFiles(LocalFiles(tmp_path / "root"), REQUESTS["hdfs"], cost)
    with pytest.raises(NotFound):
        files.rename("nothing", "there")
    assert cost.counted == {"rename": 1}


def test_a_lookup_of_a_leader_that_has_changed_is_three_lists(tmp_path: Path) -> None:
    """One call, and yet three requests: that is why drivers are counted and not calls."""
    plain, cost = LocalFiles(tmp_path / "root"), Cost()
    job_tree.create(plain, "orders")
    files = CountedFiles(plain, REQUESTS["hdfs"], cost)
    found, _ = job_tree.read(files, "orders")
    assert cost.counted == {"list": 2}
    job_tree.read(files, "orders", found)
    assert cost.counted == {"list": 3}
    later = LeaderDirectory(1, str(uuid.uuid4()))
    plain.rename(f"orders/{found.name}", f"orders/{later.name}")
    assert job_tree.read(files, "orders", found)[0] == later
    assert cost.counted == {"list": 6}


def test_files_of_this_host_have_no_namenode(tmp_path: Path) -> None:
    cost = Cost()
    with open_files(tmp_path.as_uri(), on_requests=cost) as files:
        files.call("make", every_operation, 5.0)
    assert not cost.counted


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []
        listen(self)

    def call_ended(self, store: str, operation: str, outcome: Outcome[Any]) -> None:
        self.heard.append((store, operation, "done" if outcome.done else "not done"))

    def requests_sent(self, operation: str, requests: int) -> None:
        self.heard.append((operation, str(requests)))


def test_every_listener_hears_of_every_store_of_the_process(tmp_path: Path) -> None:
    first, second = Listener(), Listener()
    with open_files(tmp_path.as_uri()) as files, pytest.raises(NotFound):
        files.call("look", lambda driver: driver.list("nothing"), 5.0)
    with pytest.raises(NotSent):
        ZooKeeper("127.0.0.1:1", session_timeout=4.0).call(Get("/x"), 1.0)
    CountedFiles(LocalFiles(tmp_path), REQUESTS["hdfs"]).list("")
    assert first.heard == [("files", "look", "not done"), ("zookeeper", "Get", "not done"), ("list", "1")]
    assert second.heard == first.heard


def test_a_listener_that_fails_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken, second = Listener(), Listener()
    broken.heard = None  # type: ignore[assignment]
    with open_files(tmp_path.as_uri()) as files:
        assert files.call("look", lambda driver: driver.list(""), 5.0) == []
    assert second.heard == [("files", "look", "done")]
    assert "A listener to store calls failed." in caplog.text


def test_a_listener_that_is_gone_is_forgotten() -> None:
    listener = Listener()
    before = len(counting._listeners)
    del listener
    assert len(counting._listeners) == before - 1


HOUSEKEEPING = {"SendHeartbeat", "BlockReceivedAndDeleted", "BlockReport", "RollEditLog", "RenewLease"}
"""Messages that servers and clients send it all the time."""


def answered(webhdfs_uri: str) -> Counter[str]:
    """How often the NameNode has answered each method; ``(external)`` is what was asked over HTTP."""
    address = webhdfs_uri.removeprefix("webhdfs://").partition("/")[0]
    question = {"qry": "Hadoop:service=NameNode,name=RpcDetailedActivityForPort*"}
    beans = requests.get(f"http://{address}/jmx", params=question, timeout=10).json()["beans"]
    shown = {name.removesuffix("NumOps"): bean[name] for bean in beans for name in bean if name.endswith("NumOps")}
    return Counter({name: count for name, count in shown.items() if not name.startswith("Overall")})


class Answered:
    """Answers of the NameNode since the last question; its figures are up to ten seconds old."""

    def __init__(self, webhdfs_uri: str) -> None:
        self._webhdfs_uri = webhdfs_uri
        self._before = answered(webhdfs_uri)

    def since(self) -> Counter[str]:
        wait_until(lambda: answered(self._webhdfs_uri) != self._before)
        found = answered(self._webhdfs_uri)
        spent, self._before = found - self._before, found
        return Counter({method: count for method, count in spent.items() if method not in HOUSEKEEPING})


@pytest.mark.hdfs
@pytest.mark.slow
@pytest.mark.parametrize("scheme", REQUESTS)
def test_the_namenode_counts_the_same(scheme: str, hdfs_uri: str, webhdfs_uri: str) -> None:
    root = f"{hdfs_uri if scheme == 'hdfs' else webhdfs_uri}/counting-{uuid.uuid4().hex}"
    files, namenode = driver_of(root)(), Answered(webhdfs_uri)
    every_operation(files)  # a first connection asks for more
    namenode.since()
    for names in (("make_root", "make_directory", "rename", "list"), ("write",), ("read",), ("delete",)):
        for name in names:
            OPERATIONS[name](files)
        spent = namenode.since()
        spent["Complete"] = min(spent["Complete"], 1)  # it is said again until the block is reported
        assert spent.total() == sum(REQUESTS[scheme][name] for name in names), (names, spent)
    files.close()
