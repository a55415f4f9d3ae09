"""Does something to the processes below another one: kills a driver, or the Java virtual machine under it.

    python -m ha.drill.programs.strike ROOT driver|jvm|all kill|expose

``expose`` makes them what the kernel ends first when memory runs out. Prints how many were struck. Only the standard
library, and nothing but ``/proc``: it runs in containers as well.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ha import memory

WORST = "1000"


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
    return "--input" in command and "--" not in command and "java" not in command[0]


def _is_jvm(command: list[str]) -> bool:
    return "org.apache.spark.deploy.SparkSubmit" in command and "java" in command[0]


_KINDS: dict[str, Callable[[list[str]], bool]] = {"driver": _is_driver, "jvm": _is_jvm, "all": bool}


def find(root: int, what: str) -> Iterator[int]:
    """Yield the processes of a kind below another one."""
    for pid in descendants(root):
        if pid != os.getpid() and _KINDS[what](_command(pid)):
            yield pid


def strike(root: int, what: str, verb: str = "kill") -> int:
    """Do it; return how many processes were struck."""
    struck = 0
    for pid in list(find(root, what)):
        try:
            if verb == "kill":
                os.kill(pid, signal.SIGKILL)
            else:
                Path(f"/proc/{pid}/oom_score_adj").write_text(WORST, encoding="ascii")
        except OSError:
            continue  # it has ended meanwhile
        struck += 1
    return struck


if __name__ == "__main__":
    print(strike(int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "kill"))  # noqa: PLR2004, T201
