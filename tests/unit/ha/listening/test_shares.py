"""Shares of streams: one host, or one token, keeps no other out."""

from typing import Any

from starlette.requests import Request

from ha.listening.shares import Share, Shares
from ha.listening.tokens import TOKEN


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
