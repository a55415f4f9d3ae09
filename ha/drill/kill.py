"""Program that kills or freezes processes below another one: a driver, or the Java virtual machine under it.

    python -m ha.drill.kill kill|freeze|expose|exhaust ROOT driver|jvm|all

``expose`` makes them the first that the kernel ends when memory runs out; these verbs print how many processes were
found. ``exhaust`` takes memory until they have ended, and then lets go of it.
Only the standard library, and nothing but ``/proc``: it runs in containers as well.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ha.sidecar.command import memory

FIRST_TO_END = "1000"  # the highest ``oom_score_adj``

STEP_BYTES = 16 * 2**20


def descendants(root: int) -> list[int]:
    """Process ids of a process and everything below it, parents first."""
    return [root, *memory.descendants(root)]


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _is_driver(command: list[str]) -> bool:
    # The sidecar and its guard have the driver's command among their own arguments, after "--".
    return ("--input" in command or "--topic" in command) and "--" not in command and "java" not in command[0]


def _is_jvm(command: list[str]) -> bool:
    return "org.apache.spark.deploy.SparkSubmit" in command and "java" in command[0]


_KINDS: dict[str, Callable[[list[str]], bool]] = {"driver": _is_driver, "jvm": _is_jvm, "all": bool}


def find(root: int, kind: str) -> Iterator[int]:
    """Yield the processes of a kind below another one."""
    for pid in descendants(root):
        if pid != os.getpid() and _KINDS[kind](_command(pid)):
            yield pid


STRIKES: dict[str, Callable[[int], object]] = {
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
    "freeze": lambda pid: os.kill(pid, signal.SIGSTOP),
    "expose": lambda pid: Path(f"/proc/{pid}/oom_score_adj").write_text(FIRST_TO_END, encoding="ascii"),
}


def strike(verb: str, root: int, kind: str) -> int:
    """Do something to the processes of a kind; return how many there were."""
    done = 0
    for pid in list(find(root, kind)):
        try:
            STRIKES[verb](pid)
        except OSError:
            continue  # it has ended meanwhile
        done += 1
    return done


def exhaust(root: int, kind: str) -> int:
    """Take memory until no process of a kind is left; return the bytes that it took."""
    taken = []
    while any(find(root, kind)):
        taken.append(b"x" * STEP_BYTES)
    return len(taken) * STEP_BYTES


if __name__ == "__main__":
    name, below, of = sys.argv[1:]
    print(exhaust(int(below), of) if name == "exhaust" else strike(name, int(below), of))  # noqa: T201
