"""What file operations cost the NameNode: as they are counted here, and by itself."""

import uuid
from collections import Counter
from pathlib import Path

import pytest
import requests

from leader import job as job_tree
from leader.names import LeaderDirectory
from store.counting import REQUESTS, CountedFiles
from store.errors import NotFound
from store.files import Files
from store.local import LocalFiles
from store.opening import open_files


class Cost:
    """Adds up what is told."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __call__(self, operation: str, requests: int) -> None:
        self.counted[operation] += requests


def every_operation(files: Files) -> dict[str, None]:
    """Do each operation once, in an order that works; returns their names."""
    files.make_root()
    files.make_directory("a")
    files.rename("a", "b")
    files.list("")
    files.write("b/c", b"0123456789")
    files.read("b/c", 100)
    files.delete("b", recursive=True)
    return dict.fromkeys(("make_root", "make_directory", "rename", "list", "write", "read", "delete"))


@pytest.mark.parametrize("scheme", REQUESTS)
def test_each_operation_is_told_with_what_it_costs(tmp_path: Path, scheme: str) -> None:
    cost = Cost()
    files = CountedFiles(LocalFiles(tmp_path / "root"), REQUESTS[scheme], cost)
    assert set(every_operation(files)) == set(REQUESTS[scheme])
    assert cost.counted == REQUESTS[scheme]


def test_what_is_refused_costs_as_much(tmp_path: Path) -> None:
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


def served(webhdfs_uri: str) -> int:
    """How many operations on files the NameNode has counted itself, of all kinds and from whomever."""
    address = webhdfs_uri.removeprefix("webhdfs://").partition("/")[0]
    question = {"qry": "Hadoop:service=NameNode,name=RpcActivityForPort*"}
    answer = requests.get(f"http://{address}/jmx", params=question, timeout=10).json()
    rpc = sum(bean["RpcProcessingTimeNumOps"] for bean in answer["beans"])
    question = {"qry": "Hadoop:service=NameNode,name=NameNodeActivity"}
    answer = requests.get(f"http://{address}/jmx", params=question, timeout=10).json()
    return int(rpc + answer["beans"][0]["TotalFileOps"])
