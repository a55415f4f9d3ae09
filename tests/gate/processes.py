"""Processes of a run: found by a mark in their environment, told about before they are ended, and ended.

A lane's processes make sessions and groups of their own, and outlive their parents. Their environment stays.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

RUN, LANE = "TESTS_RUN", "TESTS_LANE"
"""Variables of everything that a run starts. Programs under test drop those that begin with HA_."""

FOLDERS = "tests-of-"
TOLD_S = 20.0
TERM_S = 3.0


def started(pid: int) -> str | None:
    """Return a process's start in ticks since boot, which tells it from an earlier one of its number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except OSError:
        return None


def own_run() -> str:
    """Return the id of a run that this process begins."""
    return f"{os.getpid()}-{started(os.getpid())}"


def lives(run: str) -> bool:
    """Return whether the process that began a run is still there."""
    pid, _, since = run.partition("-")
    return pid.isdigit() and started(int(pid)) == since


def marked() -> Iterator[tuple[int, dict[str, str]]]:
    """Yield all processes that carry a run's mark, with their marks; not this one."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            with suppress(OSError):
                words = (each / "environ").read_bytes().split(b"\0")
                marks = dict(
                    word.decode().split("=", 1) for word in words if word.startswith((b"TESTS_RUN=", b"TESTS_LANE="))
                )
                if RUN in marks:
                    yield int(each.name), marks


def of_lane(run: str, lane: str) -> list[int]:
    return [pid for pid, marks in marked() if (marks[RUN], marks.get(LANE)) == (run, lane)]


def of_run(run: str) -> list[int]:
    return [pid for pid, marks in marked() if marks[RUN] == run]


def end(pids: Iterable[int]) -> None:
    """End processes: SIGKILL, since nothing of a run is worth a farewell. Stopped ones end as well."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_left(temporary: Path) -> list[str]:
    """End what runs have left whose first process is gone, and remove their folders; returns a line for each."""
    said = []
    for pid, marks in marked():
        if not lives(marks[RUN]):
            said.append(f"ended {pid}, left by run {marks[RUN]}, lane {marks.get(LANE, '-')}")
            end([pid])
    for folder in temporary.glob(f"{FOLDERS}*"):
        if not lives(folder.name.removeprefix(FOLDERS)):
            said.append(f"removed {folder}")
            shutil.rmtree(folder, ignore_errors=True)
    return said


def tell(pids: list[int], folder: Path, name: str, records: Iterable[Path] = ()) -> str:
    """Write what processes are doing into ``name.txt``: a list, stacks of all Pythons and JVMs; returns the text.

    Args:
        pids: of the processes.
        folder: where to write.
        name: of the lane, or of the run.
        records: files of stacks that a signal makes lanes' processes write.
    """
    listed = subprocess.run(
        ["ps", "-o", "pid,ppid,etimes,time,stat,wchan:20,rss,args", "-ww", "-p", ",".join(map(str, pids))],  # noqa: S607
        capture_output=True, text=True, timeout=TOLD_S, check=False,
    ).stdout  # fmt: skip
    parts = ["\n".join(line[:240] for line in listed.splitlines())]
    parts += [_stacks(pid) for pid in pids]
    time.sleep(1.0)  # for stacks that a process writes itself
    parts += [f"--- {path.name}\n{path.read_text(errors='replace')[-6000:]}" for path in records if path.exists()]
    text = "\n".join(part for part in parts if part)
    (folder / f"{name}.txt").write_text(text)
    return text


def _stacks(pid: int) -> str:
    """Return the stacks of a Python by py-spy; have a JVM, and a lane's process that listens, write theirs."""
    with suppress(OSError, subprocess.TimeoutExpired):
        status = Path(f"/proc/{pid}/status").read_text()
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            os.kill(pid, signal.SIGQUIT)  # into its own output: a server's log
            return ""
        program = Path(f"/proc/{pid}/exe").resolve().name
        if program.startswith("python"):
            if caught >> (signal.SIGUSR1 - 1) & 1:
                os.kill(pid, signal.SIGUSR1)
            spy = Path(sys.executable).with_name("py-spy")
            if spy.exists():
                ended = subprocess.run(
                    [spy, "dump", "--nonblocking", "--pid", str(pid)],
                    capture_output=True,
                    text=True,
                    timeout=TOLD_S,
                    check=False,
                )
                return ended.stdout
    return ""
