"""Which processes of this user serve jobs on this host: each answers on a socket of its own in one directory.

A name that does not answer is that of a process that was killed, and is removed by whoever notices. Nobody has to be
told an address for this, and no other user can ask, or be taken for one of ours.
"""

import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ha.agent.place import SHARED_MEMORY, Place, open_directory
from store.clock import now

PROCESSES = "processes"
ENDING = ".socket"

ANSWER_WITHIN = 2.0
"""Seconds for one answer; the contender's thread has as long."""

AT_ONCE = 16
"""Processes that are asked at the same time."""

LONGEST = 32_000_000
"""Bytes of an answer: thousands of jobs."""

BACKLOG = 8

Answer = dict[str, Any]

_log = logging.getLogger("ha")


def place() -> Place:
    """Return where the sockets are: the same for all processes of this user, whatever their settings."""
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path("/tmp")  # noqa: S108  # checked for its owner
    return Place(base / f"hybrid-ha-{os.geteuid()}", PROCESSES, "", 0o700)


class Presence:
    """This process's socket, and the thread that answers there."""

    def __init__(self, kind: str, jobs: Callable[[], list[Answer]], where: Place | None = None) -> None:
        """Prepare.

        Args:
            kind: of process: ``sidecar``, ``daemon`` or ``agent``.
            jobs: returns what can be seen of each; may raise ``TimeoutError``.
            where: the directory; None for the user's.
        """
        self._kind = kind
        self._jobs = jobs
        self._place = where or place()
        self._path = self._place.path / f"{os.getpid()}-{secrets.token_hex(4)}{ENDING}"
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Begin to answer; a process that cannot is only not seen."""
        try:
            open_directory(self._place, make=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            early = self._path.with_suffix("")
            self._socket.bind(str(early))
            self._socket.listen(BACKLOG)
            early.rename(self._path)  # whoever finds it is not refused, and does not take it for a dead one's
        except OSError as error:
            _log.warning("`ha status` does not see this process: %s cannot be made: %s.", self._path, error.strerror)
            return
        threading.Thread(target=self._serve, args=(self._socket,), name="ha-presence", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # or the thread would go on waiting
            self._socket.close()
        with suppress(OSError):
            self._path.unlink()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                asked, _ = listening.accept()
            except OSError:
                return  # closed
            with asked, suppress(OSError):  # who asks may go away
                asked.settimeout(ANSWER_WITHIN)
                asked.sendall(json.dumps(self._answer()).encode())

    def _answer(self) -> Answer:
        answer: Answer = {"process": self._kind, "pid": os.getpid(), "jobs": [], "error": None}
        try:
            answer["jobs"] = self._jobs()
        except TimeoutError:
            answer["error"] = "The contender's thread does not answer."
        return answer


def processes(where: Place | None = None) -> list[Answer]:
    """Ask all processes of this user on this host; returns their answers by process id.

    One that does not answer in time, because it is stopped or its host is overloaded, is there with that as its error.

    Args:
        where: the directory; None for the user's.

    Raises:
        PermissionError: somebody else could write there, so nobody there is believed.
    """
    where = where or place()
    try:
        open_directory(where)
    except FileNotFoundError:
        return []
    sockets = sorted(where.path.glob(f"*{ENDING}"))
    with ThreadPoolExecutor(AT_ONCE, "ha-status") as pool:
        answers = [answer for answer in pool.map(_ask, sockets) if answer is not None]
    return sorted(answers, key=lambda answer: int(answer["pid"]))


def _ask(path: Path) -> Answer | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ANSWER_WITHIN)
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
    """Read to the end.

    Raises:
        OSError: it does not come in time, or never.
    """
    deadline, found = now() + ANSWER_WITHIN, bytearray()
    while part := asking.recv(65_536):
        found += part
        if now() > deadline or len(found) > LONGEST:
            raise TimeoutError
    return bytes(found)
