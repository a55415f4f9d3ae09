"""A server that cannot be reached."""

import contextlib
import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port whose queue of connections is full, so that the kernel drops every further SYN."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
