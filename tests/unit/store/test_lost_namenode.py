"""A NameNode whose machine is lost answers nothing, not even a refusal; its successor must be found in time."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from store import hadoop_errors as hadoop
from store.errors import Unknown
from store.open import open_files

CALL = 1.0
"""Seconds: less than it takes any client to give up a connection."""


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address that takes no connection and refuses none: its queue of them is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.hdfs
@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_the_second_call_finds_the_other_one(scheme: str, black_hole: str, hdfs_uri: str, webhdfs_uri: str) -> None:
    living = urlsplit({"hdfs": hdfs_uri, "webhdfs": webhdfs_uri}[scheme]).netloc
    address = {"hdfs": "rpc-address", "webhdfs": "http-address"}[scheme]
    config = {
        "dfs.nameservices": "pair",
        "dfs.ha.namenodes.pair": "lost,living",
        f"dfs.namenode.{address}.pair.lost": black_hole,
        f"dfs.namenode.{address}.pair.living": living,
    }
    with open_files(f"{scheme}://pair/", config=config) as files:
        first = files.outcome("list", lambda driver: driver.list(""), CALL)
        assert isinstance(first.error, Unknown)
        for _ in range(3):
            assert files.outcome("list", lambda driver: driver.list(""), 10 * CALL).done
        assert files.stuck <= 1


def test_namenodes_take_turns() -> None:
    settings = {"dfs.ha.namenodes.pair": " a, b,c", "other": "stays"}
    names = [hadoop.in_turn(settings, "pair", turn)["dfs.ha.namenodes.pair"] for turn in range(4)]
    assert names == ["a,b,c", "b,c,a", "c,a,b", "a,b,c"]
    assert hadoop.in_turn({}, "pair", 1) == {"dfs.ha.namenodes.pair": ""}
