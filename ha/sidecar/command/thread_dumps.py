"""Thread dumps of a driver that does not answer: its Python's and its JVM's, within one bound."""

import os
import signal
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ha.sidecar.command.memory import stat_of
from store.clock import BOOT_CLOCK, now

DUMP_S = 2.0  # longest wait for the stacks of a process; both are asked at once
POLL_S = 0.05
PYTHON_SIGNAL = signal.SIGUSR2  # makes a driver's Python write its stacks: see `ha.program.heartbeat`


def thread_dumps(python: int, jvm: int, python_stacks: Path) -> str:
    """Return the stacks of a driver's threads, or a sentence in place of those that cannot be had."""
    # Process ids are 0 if not known. The Python writes its stacks into the file.
    with ThreadPoolExecutor(2, "ha-stacks") as both:
        parts = (
            both.submit(_dump, "Python", python, lambda: _of_python(python, python_stacks)),
            both.submit(_dump, "JVM", jvm, lambda: _of_jvm(jvm)),
        )
    return "\n\n".join(part.result() for part in parts)


def first_of(program: str, pids: Iterable[int]) -> int:
    """Return the first of these processes that runs a program whose name begins like that; 0 if none does."""
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name.startswith(program):
                return pid
    return 0


def _dump(called: str, pid: int, ask: Callable[[], str]) -> str:
    state = _state(pid)
    if not state:
        return f"{called}: its process has ended, or is not known."
    if state in "Tt":
        return f"{called}: process {pid} is stopped, as by SIGSTOP, and gives no stacks."
    try:
        stacks = ask()
    except OSError as error:
        stacks = f"no stacks: {error}"
    return f"{called}, process {pid}:\n{stacks.strip() or f'no stacks within {DUMP_S:g} s.'}"


def _of_python(pid: int, stacks: Path) -> str:
    if not stacks.exists():  # without its handler the signal would end the program
        return "no stacks: it does not lead by ha.spark.lead, or handles SIGUSR2 itself."
    before = stacks.stat().st_size
    os.kill(pid, PYTHON_SIGNAL)
    deadline, size = now() + DUMP_S, -1
    while now() < deadline and (size <= before or stacks.stat().st_size > size):
        size = stacks.stat().st_size
        BOOT_CLOCK.sleep(POLL_S)
    return stacks.read_bytes()[before:].decode(errors="replace")


def _of_jvm(pid: int) -> str:
    """Ask by HotSpot's attach protocol, as ``jcmd PID Thread.print`` does, which would start a JVM for it."""
    # The file and the signal make the JVM listen on its socket. One that may not listen writes to its output.
    root = Path(f"/proc/{pid}/root/tmp")
    wanted, listens = Path(f"/proc/{pid}/cwd/.attach_pid{pid}"), root / f".java_pid{pid}"
    deadline = now() + DUMP_S
    if not listens.is_socket():
        wanted.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            while not listens.is_socket():
                if now() >= deadline:
                    return f"no stacks within {DUMP_S:g} s; perhaps they are in the command's output."
                BOOT_CLOCK.sleep(POLL_S)
        finally:
            wanted.unlink(missing_ok=True)
    return _answer(listens, deadline)


def _answer(listens: Path, deadline: float) -> str:
    """Return what a JVM answers on its socket to a request for a thread dump."""
    found = bytearray()
    with socket.socket(socket.AF_UNIX) as asking, suppress(TimeoutError):
        asking.settimeout(max(POLL_S, deadline - now()))
        asking.connect(f"{listens}")
        asking.sendall(b"1\0threaddump\0\0\0\0")  # the version of the protocol, and three arguments
        while (part := asking.recv(65536)) and now() < deadline:
            found += part
    return found.decode(errors="replace").partition("\n")[2]  # the first line is a code


def _state(pid: int) -> str:
    """Return the letter that the kernel has for the state of a process; nothing if there is none."""
    with suppress(OSError, IndexError):
        if pid > 0:
            return stat_of(pid)[0]
    return ""
