"""Addresses and paths: what is taken, and one sentence for what is not."""

import pytest

from store import errors
from store.zookeeper import ZooKeeper
from store.zookeeper.address import Address, ancestors, check_path, parse


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("a:1", [("a", 1)], "/default"),
        ("a:1,b.example.org:65535,10.0.0.1:2181/x/y", [("a", 1), ("b.example.org", 65535), ("10.0.0.1", 2181)], "/x/y"),
        ("a", [("a", 2181)], "/default"),
        ("[::1]:7,[fe80::1]/c/", [("::1", 7), ("fe80::1", 2181)], "/c"),
        ("a:1/", [("a", 1)], ""),
        ("a:1/grün", [("a", 1)], "/grün"),
    ],
)
def test_address(text: str, servers: list[tuple[str, int]], chroot: str) -> None:
    address = parse(text, "/default")
    assert address == Address(tuple(servers), chroot)
    assert parse(f"{address}" if chroot else f"{address}/", "/other") == address


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a:1, b:2", "white space"),
        ("a:1,,b:2", "missing"),
        ("a:1,", "missing"),
        ("/chroot", "missing"),
        ("a:", "not a number"),
        ("a:port", "not a number"),
        ("a:-1", "not a number"),
        ("a:٣", "not a number"),
        ("a:0", "out of range"),
        ("a:65536", "out of range"),
        ("::1:2181", "brackets"),
        ("[::1:2181", "IPv6"),
        ("[::1]2181", "IPv6"),
        ("http:" + "//a:1", "not a number"),
        ("a_:b@c:1", "colon"),
        ("b@c:1", "host name"),
        ("-a:1", "host name"),
        ("x" * 64 + ":1", "host name"),
        ("a:1//x", "empty name"),
        ("a:1/x/../y", "relative"),
        ("a:1/.", "relative"),
        ("a:1/x\0", "refuses"),
        ("a:1/x\udcff", "refuses"),  # what os.fsdecode makes of bytes that are not UTF-8
        ("a:1/x\ue000", "refuses"),
    ],
)
def test_bad_address(text: str, says: str) -> None:
    with pytest.raises(errors.Invalid, match=says) as caught:
        ZooKeeper(text, session_timeout=1)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "a", "a/b", "//", "/a/", "/a//b", "/a/./b", "/..", "/a\x7f", "/\ud800"])
def test_bad_path(path: str) -> None:
    with pytest.raises(errors.Invalid):
        check_path(path)


def test_ancestors() -> None:
    assert ancestors("/a/b/c") == ["/a", "/a/b"]
    assert ancestors("/a") == []


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), 1e9])
def test_bad_session_timeout(timeout: float) -> None:
    with pytest.raises(errors.Invalid, match="session time-out"):
        ZooKeeper("a:1", session_timeout=timeout)
