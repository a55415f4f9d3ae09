"""The socket that `ha status` asks, when its process has no descriptor left."""

import socket
from pathlib import Path

import pytest

from ha.config.snapshot_dir import SnapshotDirectory
from ha.daemon import local_registry
from ha.daemon.local_registry import LocalRegistry, local_processes


def test_a_process_without_descriptors_answers_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_registry, "SCARCE_PAUSE_S", 0.0)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")] * 2

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    where = SnapshotDirectory(tmp_path, "processes", "", 0o700)
    registry = LocalRegistry("daemon", list, where)
    registry.start()
    assert [each["process"] for each in local_processes(where)] == ["daemon"]
    assert not failures
    registry.close()
