"""The socket that `ha host status` asks, when its process has no descriptor left."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.config.snapshot_dir import SnapshotDirectory, own_base
from ha.daemon import local_registry
from ha.daemon.local_registry import LocalRegistry, local_processes
from tests.unit.ha.waiting import wait_until


@pytest.fixture
def base() -> Iterator[Path]:
    """Where a user's processes meet. Its path is short, as the product's is: a socket's has at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir=own_base().parent, prefix="ha-") as found:
        yield Path(found, "base")


def test_a_process_without_descriptors_answers_later(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_registry, "SCARCE_PAUSE_S", 0.0)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")] * 2

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    where = SnapshotDirectory(base, "processes", "", 0o700)
    registry = LocalRegistry("daemon", list, where)
    registry.start()
    assert [each["process"] for each in local_processes(where)] == ["daemon"]
    assert not failures
    registry.close()


def test_a_socket_that_somebody_has_removed_is_made_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_registry, "LOOK_S", 0.05)
    where = SnapshotDirectory(base, "processes", "", 0o700)
    registry = LocalRegistry("daemon", list, where)
    registry.start()
    shutil.rmtree(base)
    assert [each["process"] for each in wait_until(lambda: local_processes(where))] == ["daemon"]
    registry.close()
    assert local_processes(where) == []
