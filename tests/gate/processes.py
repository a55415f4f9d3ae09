"""Processes of a run: found by a mark in their environment, told about before they are ended, and ended.

A lane's processes make sessions and groups of their own, and outlive their parents. Their environment stays.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

RUN, LANE = "TESTS_RUN", "TESTS_LANE"
"""Variables of everything that a run starts. Programs under test drop those that begin with HA_."""

FOLDERS = "tests-of-"
REMOVERS = 8
TOLD_S, ALL_TOLD_S = 20.0, 60.0


def started(pid: int) -> str | None:
    """Return a process's start, in ticks since boot: with it a number is a name. None if it has died."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


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
                if (each / "ns" / "pid").readlink() != Path("/proc/self/ns/pid").readlink():
                    continue  # a container's, whose numbers mean others
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


def end(find: Callable[[], Iterable[int]]) -> None:
    """End processes: SIGKILL, since nothing of a run is worth a farewell. Stopped ones end as well."""
    for _ in range(3):  # what is about to start something is seen once more
        for pid in find():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def run_of_its_own() -> Iterator[tuple[Path, list[str]]]:
    """Mark this process and so all that it starts; yields a folder for temporary files, and what was left by others.

    All that it has started ends with the block, and the folder is removed, also after SIGTERM and SIGHUP.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    for name in ("PYTEST_ADDOPTS", "HA_TEST_SANDBOX"):
        os.environ.pop(name, None)
    run = os.environ[RUN] = own_run()
    folder = Path(tempfile.gettempdir(), f"{FOLDERS}{run}")
    left = end_left(folder.parent)
    folder.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield folder, left
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        end(lambda: of_run(run))
        remove(folder)


def remove(folder: Path) -> None:
    """Remove the temporary files of a run: each waits for the disk, so many at once take a tenth of the time."""
    with ThreadPoolExecutor(REMOVERS) as pool:
        for path in folder.glob("*/*"):
            pool.submit(shutil.rmtree, path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def end_left(temporary: Path) -> list[str]:
    """End what runs have left whose first process is gone, and remove their folders; returns a line for each."""
    said = []
    for pid, marks in marked():
        if not lives(marks[RUN]):
            said.append(f"ended {pid}, left by run {marks[RUN]}, lane {marks.get(LANE, '-')}")
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for folder in temporary.glob(f"{FOLDERS}*"):
        if not lives(folder.name.removeprefix(FOLDERS)):
            said.append(f"removed {folder}")
            remove(folder)
    return said


def tell(pids: list[int], folder: Path, name: str, records: Iterable[Path] = ()) -> str:
    """Write what processes are doing into ``name.txt``: a list, stacks of all Pythons and JVMs; returns the text.

    Args:
        pids: of the processes.
        folder: where to write.
        name: of the lane, or of the run.
        records: files of stacks that a signal makes lanes' processes write.
    """
    parts, end_at = [_listed(pids)], time.monotonic() + ALL_TOLD_S
    for pid in pids:
        parts += [_stacks(pid)] if time.monotonic() < end_at else []
    time.sleep(1.0)  # for stacks that a process writes itself
    parts += [f"--- {path.name}\n{path.read_text(errors='replace')[-6000:]}" for path in records if path.exists()]
    text = "\n".join(part for part in parts if part)
    (folder / f"{name}.txt").write_text(text)
    return text


def _listed(pids: Iterable[int]) -> str:
    command = ["ps", "-o", "pid,ppid,etimes,time,stat,wchan:20,rss,args", "-ww", "-p", ",".join(map(str, pids))]
    with suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(command, capture_output=True, text=True, timeout=TOLD_S, check=False).stdout
        return "\n".join(line[:240] for line in said.splitlines())
    return "ps says nothing"


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
