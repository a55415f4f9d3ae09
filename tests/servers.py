"""Whether the servers that tests share still live: 500 tests would wait for a dead one, each for its own limit."""

from pathlib import Path

import pytest

from ha.sandbox import Sandbox
from ha.sandbox.server_process import condition
from ha.sandbox.state import Directory

SHOWN = 20
"""Lines of a dead server's log."""

KINDS = {"zookeeper", "namenode", "datanode"}
"""Others are added while tests run, and are not up from the beginning."""


def lost(sandbox: Sandbox) -> str:
    """Return which server is gone, and the end of its log; empty if there is none. Takes less than a millisecond."""
    directory = Directory(sandbox.directory)
    state = directory.load()
    if state is None:
        return f"The shared sandbox in {directory.root} is gone."
    for server in state.servers:
        if server.kind in KINDS and condition(server.process) == "down":
            said = _end(directory.log(server.name))
            return f"{server.name} of the shared sandbox is gone, and nothing that needs it is run. Its log:\n{said}"
    return ""


def exit_if_lost(sandbox: Sandbox) -> None:
    """End this process with code 3, if a server is gone.

    So only between tests: one that hurts a server has started it again by then.
    """
    if why := lost(sandbox):
        pytest.exit(why, returncode=3)


def _end(log: Path) -> str:
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:])
    except OSError as error:
        return f"it cannot be read: {error}"
