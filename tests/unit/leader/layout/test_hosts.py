"""Hosts in the names of contenders."""

import os

import pytest

from ha.config.sources import gather
from leader.layout.bar import Bar, bar_of
from leader.layout.hosts import alike, covers, host_of, own_name


def test_a_process_that_has_named_itself_belongs_to_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node-1.example.com")
    name = gather({}, {"HOME": os.sep}).settings.leadership.contender
    assert host_of(name) == "node-1.example.com"
    assert host_of(own_name("node-1-2", 77, "0a1b2c")) == "node-1-2"


@pytest.mark.parametrize("name", ["node-1", "worker-12-3", "node-1-abcdeg", "node-12-0a1b2", "a", "node-7-0A1B2C"])
def test_a_name_that_was_given_is_taken_whole(name: str) -> None:
    assert host_of(name) == name


def test_an_order_holds_for_a_name_and_for_those_who_named_themselves_on_a_host() -> None:
    assert covers("node1", "node1")
    assert covers("node1", "node1-4711-0a1b2c")
    assert covers("node1-4711-0a1b2c", "node1-4711-0a1b2c")
    assert not covers("node1-4711-0a1b2c", "node1-4712-0a1b2c")
    assert not covers("node1", "node12")
    assert not covers("worker", "worker-1")


def test_of_two_bars_the_longer_one_holds() -> None:
    own, hosts = Bar("node1-4711-0a1b2c", 100), Bar("node1", 200)
    found = {each.contender: each for each in (own, hosts, Bar("node2", 300))}
    assert bar_of(found, own.contender) == hosts
    assert bar_of(found, "node1") == hosts
    assert bar_of(found, "node3") is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("node1", "node1.example.com", True),
        ("NODE1.example.com", "node1", True),
        ("node1.example.com", "node1.example.org", False),
        ("node1", "node12.example.com", False),
        ("10", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.1", True),
    ],
)
def test_names_that_may_be_one_host(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is same
    assert alike(other, one) is same
