"""The hosts that executors keep off: those that an operator named, those that are drained, and what is not known."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.store_work import StoreWork
from leader.job import barring
from leader.job.admin import JobAdmin
from leader.job.request_folder import Request
from leader.layout.bar import Bar
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.errors import NotWritable
from store.local import LocalFiles
from tests.unit.ha.led import Led
from tests.unit.ha.web_servers import web_servers


class Root(LocalFiles):
    away = False

    def list(self, path: str) -> Any:
        if self.away:
            raise NotWritable("standby")
        return super().list(path)

    def make_directory(self, path: str) -> None:
        if self.away:
            raise NotWritable("standby")
        super().make_directory(path)


class Place:
    """A led job, and the hosts of its executors as its sidecar sees them."""

    def __init__(self, root: Root, files: BoundedFiles) -> None:
        self.root = root
        self.directory = JobAdmin(files, None, 5).directory("orders")
        self.leader = self.directory.leader
        stores: Any = SimpleNamespace(files=files, timing=Timing())
        status: Any = SimpleNamespace(directory=lambda _: self.directory)
        self.hosts = ExecutorHosts(stores, "orders", status)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Led(tmp_path).claim("orders", "a:1")
    root = Root(tmp_path, durable=False)
    with BoundedFiles(lambda: root) as files:
        yield Place(root, files)


def test_named_and_drained_hosts_are_kept_off(place: Place) -> None:
    assert place.hosts.excluded(place.leader) == []
    assert place.hosts.keep_off(place.leader, ["h2"]) == ""
    for host, seconds in (("h1", 600), ("h3", -600)):
        barring.drain(place.root, Bar(host, int(time.time()) + seconds))
    assert place.hosts.excluded(place.leader) == ["h1", "h2"]
    assert place.hosts.excluded(None) == ["h1"], "a warm standby leads nothing"
    barring.undrain(place.root, "h1")
    assert place.hosts.excluded(place.leader) == ["h2"]


def test_a_store_that_is_away_keeps_no_command_from_its_start(place: Place) -> None:
    place.hosts.keep_off(place.leader, ["h2"])
    assert place.hosts.excluded(place.leader) == ["h2"]
    place.root.away = True
    assert place.hosts.excluded(place.leader) == ["h2"], "as it was known before"
    assert "standby" in place.hosts.keep_off(place.leader, ["h4"])
    place.root.away = False
    assert place.hosts.excluded(place.leader) == ["h2"]


def test_a_restart_records_them_until_the_next_one_or_says_that_it_cannot(place: Place) -> None:
    programs: Any = SimpleNamespace(newest=lambda _: None)
    nothing: Any = None
    store = StoreWork(
        "orders", nothing, nothing, nothing, programs, lambda: nothing, place.hosts, None, None, nothing, nothing
    )  # fmt: skip

    def prepared(**arguments: str) -> object:
        return store.carry_out(do.PrepareRestart(place.leader, Request("1", "restart", 1, "", arguments)))

    assert prepared(exclude="h2, h1") == events.RestartPrepared("1")
    assert place.hosts.excluded(place.leader) == ["h1", "h2"]
    assert prepared() == events.RestartPrepared("1")
    assert place.hosts.excluded(place.leader) == []
    place.root.away = True
    found = prepared(exclude="h1")
    assert isinstance(found, events.RestartPrepared)
    assert "which hosts are excluded: standby" in found.problem


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A ResourceManager that answers as Hadoop's does, and is asked from now on; yields the names of its nodes."""
    there = ["Node1.example.com", "node2.example.com"]

    def answer(path: str) -> tuple[int, bytes]:
        assert path.startswith("/ws/v1/cluster/nodes?states=NEW,RUNNING,"), path
        return 200, json.dumps({"nodes": {"node": [{"nodeHostName": each} for each in there]}}).encode()

    with web_servers() as start:
        said = f"<property><name>yarn.resourcemanager.webapp.address</name><value>{start(answer)}</value></property>"
        (tmp_path / "yarn-site.xml").write_text(f"<configuration>{said}</configuration>")
        monkeypatch.setenv("HADOOP_CONF_DIR", f"{tmp_path}")
        yield there


def test_a_host_is_kept_off_under_the_name_that_yarn_knows(place: Place, manager: list[str]) -> None:
    """R60 of the reports: a name that nobody has was taken, and the executors stayed."""
    assert place.hosts.keep_off(place.leader, ["node1", "NODE2.example.com"]) == ""
    assert place.hosts.excluded(place.leader) == manager
    assert place.hosts.keep_off(place.leader, []) == ""
    for host in ("node1", "elsewhere"):  # as contenders there call themselves
        barring.drain(place.root, Bar(host, int(time.time()) + 600))
    assert place.hosts.excluded(place.leader) == ["Node1.example.com", "elsewhere"]


def test_a_host_that_yarn_has_not_is_refused_with_those_that_it_has(place: Place, manager: list[str]) -> None:
    assert place.hosts.keep_off(place.leader, ["node3"]).endswith(
        "YARN has no node 'node3', and would ignore it. It has Node1.example.com, node2.example.com."
    )
    manager.append("node1.example.org")
    assert "'node1' may be Node1.example.com or node1.example.org: name one" in place.hosts.keep_off(
        place.leader, ["node1"]
    )
    assert place.hosts.excluded(place.leader) == [], "nothing was recorded"
    manager.clear()
    assert place.hosts.keep_off(place.leader, ["node1"]).endswith("It has none at all.")
    assert place.hosts.keep_off(place.leader, []) == "", "all hosts again"


@pytest.mark.parametrize("said", [(401, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"nodes": {"node": [1]}}')])
def test_a_manager_that_does_not_say_its_nodes_refuses_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: tuple[int, bytes]
) -> None:
    with web_servers() as start:
        (tmp_path / "yarn-site.xml").write_text(
            "<configuration>"
            "<property><name>yarn.resourcemanager.ha.rm-ids</name><value>a, b</value></property>"
            "<property><name>yarn.resourcemanager.hostname.a</name><value>127.0.0.1.invalid</value></property>"
            "<property><name>yarn.resourcemanager.webapp.address.b</name>"
            f"<value>{start(lambda _: said)}</value></property></configuration>"
        )
        monkeypatch.setenv("HADOOP_CONF_DIR", f"{tmp_path}")
        assert place.hosts.keep_off(place.leader, ["h2"]) == ""
    assert place.hosts.excluded(place.leader) == ["h2"]
