"""The stores of a process: one directory, or all roots of a group."""

import socket
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from ha.config.sources import load
from ha.config.stores import COMMAND_CALL_S, Stores
from store.errors import Invalid
from store.zookeeper.session_client import SessionClient


def test_a_comma_in_one_directory_separates_nothing(tmp_path: Path) -> None:
    opened = Stores(load({"files": (tmp_path / "ha").as_uri(), "zookeeper": ""}))
    uri = f"{tmp_path.as_uri()}/a,b"
    with opened.open_root(uri) as files:
        assert files.uri == uri
    with pytest.raises(Invalid):
        opened.open(uri)
    opened.close()


def test_a_command_waits_longer_for_a_call_than_a_leader_may(tmp_path: Path) -> None:
    """What holds a lease gives a call up while the lease lasts; an operator waits for a slow NameNode."""
    place = {"files": tmp_path.as_uri(), "zookeeper": ""}
    with closing(Stores(load({**place, "short_ttl": "4", "session_timeout": "4"}))) as quick:
        assert quick.timing.call_timeout < 1.5
        assert quick.patience == COMMAND_CALL_S
    patient = {**place, "short_ttl": "60", "long_ttl": "300", "session_timeout": "60", "call_timeout": "9"}
    with closing(Stores(load(patient))) as slow:
        assert slow.patience == slow.timing.call_timeout > COMMAND_CALL_S


@pytest.mark.parametrize("asked", [True, False])
def test_the_end_of_no_session_is_not_waited_for(tmp_path: Path, asked: bool) -> None:
    """A server that is frozen takes connections, and never greets: each command waited 2.5 s longer for its end."""
    ended: list[float] = []
    end = SessionClient.close

    def ends(client: SessionClient, timeout: float) -> None:
        ended.append(timeout)
        end(client, timeout)

    with socket.create_server(("127.0.0.1", 0)) as frozen:
        place = {"files": tmp_path.as_uri(), "zookeeper": f"127.0.0.1:{frozen.getsockname()[1]}"}
        opened = Stores(load(place))
        assert opened.zookeeper is not None
        if asked:
            opened.zookeeper.start()
        with patch.object(SessionClient, "close", ends):
            opened.close()
    assert ended == ([0.0] if asked else [])
    assert opened.zookeeper.state.value == "lost", "it is closed for ever"
