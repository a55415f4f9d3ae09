"""The local registry: the processes of this user on this host. Each answers on its own socket in one directory.

A socket that refuses connections belongs to a process that was killed; the first reader that notices removes it. The
registry needs no configured address. Other users can neither ask these processes nor pretend to be one.
"""

import errno
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ha.config.snapshot_dir import SnapshotDirectory, open_directory, own_base
from store.clock import now

PROCESSES = "processes"
SUFFIX, SUFFIX_EARLY = ".socket", ".making"
"""Of a socket that answers, and of one that will. They are equally long: what can be bound can also be connected to."""

ANSWER_WITHIN_S = 2.0  # time for one answer; the contender's thread has as long
MAX_ASKED = 16  # processes that are asked at the same time
MAX_ANSWER_BYTES = 32_000_000  # an answer about thousands of jobs is shorter

BACKLOG = 8

LOOK_S = 60.0
"""Longest time for which a socket that somebody has removed is missing: the system removes a user's at his log-out."""

SCARCE_PAUSE_S = 1.0  # pause before the next accept after the system had no descriptor left

Answer = dict[str, Any]

_log = logging.getLogger("ha")


def registry_directory() -> SnapshotDirectory:
    """Return the directory of the sockets: one for all processes of this user, whatever their settings."""
    return SnapshotDirectory(own_base(), PROCESSES, "", 0o700)


class LocalRegistry:
    """The entry of this process: a socket, and the thread that answers on it."""

    def __init__(self, kind: str, jobs: Callable[[], list[Answer]], where: SnapshotDirectory | None = None) -> None:
        """Prepare."""
        # `kind`: of process: ``sidecar``, ``daemon`` or ``agent``. `jobs`: returns the status of each job; may raise
        # ``TimeoutError``. `where`: the directory; None for the user's.
        self._kind = kind
        self._jobs = jobs
        self._place = where or registry_directory()
        self._path = self._place.path / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        self._socket: socket.socket | None = None
        self._closed = False

    def start(self) -> None:
        """Begin to answer. If that is not possible, the process is only missing in the registry."""
        try:
            self._socket = self._listen()
        except OSError as error:
            _log.warning("`ha host status` does not see this process: %s cannot be created: %s.", self._path, error)
            return
        threading.Thread(target=self._serve, args=(self._socket,), name="ha-presence", daemon=True).start()

    def _listen(self) -> socket.socket:
        open_directory(self._place, make=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        early = self._path.with_suffix(SUFFIX_EARLY)
        try:
            listening.bind(str(early))
            listening.listen(BACKLOG)
            listening.settimeout(LOOK_S)
            # Readers take a socket that refuses connections for a dead process's. So the final name comes last.
            early.rename(self._path)
        except OSError:
            listening.close()
            raise
        return listening

    def close(self) -> None:
        """Stop answering, and remove the socket."""
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # or the thread would wait for ever
            self._socket.close()
        with suppress(OSError):
            self._path.unlink()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                asked, _ = listening.accept()
            except TimeoutError:
                if not self._closed and not self._path.exists():
                    with suppress(OSError):  # it is tried again
                        again = self._listen()
                        listening.close()
                        self._socket = listening = again
                continue
            except OSError as error:
                if error.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    return  # closed
                time.sleep(SCARCE_PAUSE_S)
                continue
            with asked, suppress(OSError):  # the asking process may be gone
                asked.settimeout(ANSWER_WITHIN_S)
                asked.sendall(json.dumps(self._answer()).encode())

    def _answer(self) -> Answer:
        answer: Answer = {"process": self._kind, "pid": os.getpid(), "jobs": [], "error": None}
        try:
            answer["jobs"] = self._jobs()
        except TimeoutError:
            answer["error"] = "The contender's thread does not answer."
        return answer


def local_processes(where: SnapshotDirectory | None = None) -> list[Answer]:
    """Ask all processes of this user on this host; returns their answers by process id."""
    # A process may not answer in time, because it is stopped or its host is overloaded: its answer then is an error.
    # `where`: the directory; None for the user's.
    # PermissionError: another user could write there, so no answer can be trusted.
    where = where or registry_directory()
    try:
        open_directory(where)
    except FileNotFoundError:
        return []
    sockets = sorted(where.path.glob(f"*{SUFFIX}"))
    with ThreadPoolExecutor(MAX_ASKED, "ha-status") as pool:
        answers = [answer for answer in pool.map(_ask, sockets) if answer is not None]
    return sorted(answers, key=lambda answer: int(answer["pid"]))


def _ask(path: Path) -> Answer | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ANSWER_WITHIN_S)
        try:
            asking.connect(str(path))
            answer: Answer = json.loads(_read(asking))
        except (ConnectionRefusedError, FileNotFoundError):  # it was killed, or has just ended
            path.unlink(missing_ok=True)
            return None
        except (OSError, ValueError):
            pid = path.name.partition("-")[0]
            return {"process": "?", "pid": int(pid), "jobs": [], "error": f"Process {pid} does not answer."}
        return answer


def _read(asking: socket.socket) -> bytes:
    """Read to the end. OSError: the answer does not come in time, or is too long."""
    deadline, found = now() + ANSWER_WITHIN_S, bytearray()
    while part := asking.recv(65_536):
        found += part
        if now() > deadline or len(found) > MAX_ANSWER_BYTES:
            raise TimeoutError
    return bytes(found)
