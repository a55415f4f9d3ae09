"""Connections to a job master, on a host that lacks something."""

import socket

import pytest

from ha.jobmaster.call_errors import NotExecuted
from ha.jobmaster.exchange import MOST_LOOKUPS, connect
from store.clock import now
from tests.lacks import no_thread_free
from tests.patience import PATIENCE_S


def test_without_a_free_thread_no_name_is_looked_up_and_later_all_are() -> None:
    with no_thread_free("ha-resolver"):
        for _ in range(MOST_LOOKUPS + 1):
            with pytest.raises(NotExecuted, match="was not looked up"):
                connect("localhost", 1, now() + PATIENCE_S)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connect("localhost", listening.getsockname()[1], now() + PATIENCE_S).close()
