"""Which connection goes when there are too many, and shares of streams: one host, or one token, keeps no other out."""

import resource
from typing import Any

import pytest
from starlette.requests import Request

from ha.listening import connections
from ha.listening.connections import Connection, Connections, group_of
from ha.listening.shares import Share, Shares
from ha.listening.tokens import TOKEN


class Held:
    def __init__(self, most: int, spared: float = 0.0) -> None:
        self.all = Connections(most, spared)
        self.names: dict[Connection, str] = {}

    def add(self, address: str, name: str, at: float = 0.0) -> str:
        """Add one; returns the name of the one that has to go, and forgets that one."""
        self.names[self.all.add(address, lambda: None, at)] = name
        surplus = self.all.surplus(at)
        if surplus is None:
            return ""
        self.all.remove(surplus)
        return self.names[surplus]

    def busy(self, name: str) -> None:
        next(each for each in self.names if self.names[each] == name).busy = True


def test_as_many_as_are_allowed_stay() -> None:
    held = Held(2)
    assert [held.add("10.0.0.1", name) for name in "abc"] == ["", "", "a"]
    assert len(held.all) == 2


def test_the_host_with_the_most_loses_its_oldest() -> None:
    held = Held(3)
    for address, name in (("10.0.0.9", "other"), ("10.0.0.1", "a"), ("10.0.0.1", "b")):
        held.add(address, name)
    assert held.add("10.0.0.1", "c") == "a"
    assert held.add("10.0.0.2", "third") == "b"


def test_a_busy_connection_goes_last() -> None:
    held = Held(2)
    held.add("10.0.0.1", "a")
    held.add("10.0.0.1", "b")
    held.busy("a")
    assert held.add("10.0.0.1", "c") == "b"
    held.busy("c")
    assert held.add("10.0.0.1", "d") == "d"
    assert held.add("10.0.0.2", "e") == "c", "all of the largest host are busy"


def test_a_connection_is_spared_for_some_time() -> None:
    held = Held(2, spared=60.0)
    held.add("10.0.0.1", "a", 0.0)
    held.add("10.0.0.1", "b", 30.0)
    assert held.add("10.0.0.1", "c", 59.9) == "c"
    assert held.add("10.0.0.1", "d", 60.0) == "a"
    assert held.add("10.0.0.1", "e", 61.0) == "e"


def test_of_many_hosts_with_one_connection_each_the_oldest_goes() -> None:
    held = Held(3)
    for number in range(3):
        held.add(f"10.0.0.{number}", f"{number}", number)
    held.busy("0")
    assert held.add("10.0.0.3", "3", 3.0) == "1"


def test_of_many_hosts_whose_connections_are_spared_the_newest_goes() -> None:
    held = Held(3, spared=60.0)
    for number in range(3):
        held.add(f"10.0.0.{number}", f"{number}", number)
    assert held.add("10.0.0.3", "3", 3.0) == "3"
    assert held.add("10.0.0.4", "4", 60.0) == "0"


def test_a_connection_that_was_removed_is_not_counted_twice() -> None:
    all_ = Connections(1)
    one = all_.add("10.0.0.1", lambda: None, 0.0)
    all_.remove(one)
    all_.remove(one)
    assert len(all_) == 0
    all_.add("10.0.0.1", lambda: None, 0.0)
    assert all_.surplus(0.0) is None


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"), ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("", ""),
    ],
)  # fmt: skip
def test_what_counts_as_one_host(address: str, group: str) -> None:
    assert group_of(address) == group


@pytest.mark.parametrize(
    ("descriptors", "most"),
    [(1024, 256), (4096, 1024), (8192, 1024), (64, 16), (10, 8), (resource.RLIM_INFINITY, 1024)],
)
def test_a_quarter_of_the_descriptors_is_allowed(descriptors: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, resource.RLIM_INFINITY))
    assert connections.most_connections() == most


def asked(host: str, token: str = "") -> Request:
    scope: dict[str, Any] = {"type": "http", "client": (host, 1), TOKEN: token, "headers": []}
    return Request(scope)


def took(shares: Shares, host: str, token: str = "", most: int = 6) -> Share:
    found = shares.take(asked(host, token), most)
    assert found is not None
    return found


def test_whoever_has_the_most_loses_the_oldest() -> None:
    shares = Shares()
    greedy = [took(shares, "10.0.0.1") for _ in range(6)]
    assert shares.take(asked("10.0.0.1"), 6) is None
    others = [took(shares, host) for host in ("10.0.0.2", "10.0.0.3", "10.0.0.4")]
    assert [each.over for each in greedy] == [True, True, True, False, False, False]
    assert shares.take(asked("10.0.0.1"), 6) is None, "it would have as many as it may"
    assert not any(each.over for each in others)


def test_nobody_loses_a_share_to_one_who_would_then_have_as_many() -> None:
    shares = Shares()
    held = [took(shares, f"10.0.0.{number}") for number in range(6)]
    assert shares.take(asked("10.0.0.9"), 6) is None
    shares.leave(held[0])
    shares.leave(held[0])
    took(shares, "10.0.0.9")
    assert shares.take(asked("10.0.0.8"), 6) is None
    assert not any(each.over for each in held)


def test_a_network_of_ipv6_is_one_host_and_each_token_counts_for_itself() -> None:
    shares = Shares()
    ours = [took(shares, f"2001:db8::{number}") for number in range(6)]
    assert shares.take(asked("2001:db8::77"), 6) is None
    took(shares, "2001:db8::77", "a token")
    assert [each.over for each in ours] == [True] + [False] * 5
