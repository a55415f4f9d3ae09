"""Lacks that are made from outside, on processes that run: what a host can have no more of, for a while.

A program under test is started in a :class:`Place`: a cgroup, a mount and a network of its own, which end with it. So
nothing else on this machine lacks anything, and nothing is left.
"""

import os
import resource
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from tests.lacks import fill
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

CGROUPS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
ROOM, INODES = 64 << 20, 2000  # of the disk for shared memory and temporary files
SHARED = "/dev/shm"  # noqa: S108  # a file system of the place
TEMPORARY = f"{SHARED}/temporary"
LISTENS = "127.0.0.1:8300"  # in the network of each place
PORT = 40_000
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"

_ENTER = (
    f"mount -t tmpfs -o size={ROOM},nr_inodes={INODES} room {SHARED} && mkdir {TEMPORARY} && ip link set lo up "
    '&& exec "$@"'
)
_HOLD = "import socket, sys; s = socket.socket(); s.bind(('', int(sys.argv[1]))); print(flush=True); sys.stdin.read()"
_GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"

Lack = AbstractContextManager[Callable[[], int]]
"""While it is entered the lack lasts. It yields what tells how often something was refused, 0 if nobody counts that."""


class Unavailable(Exception):
    """This machine takes nothing away from a process; the text says why."""


class Place:
    """Where a program runs of which something can be taken away."""

    def __init__(self) -> None:
        missing = [each for each in ("unshare", "nsenter", "ip", "mount") if shutil.which(each) is None]
        if os.geteuid() != 0 or missing:
            raise Unavailable(f"Only root takes something away from a process, with {' '.join(missing) or 'cgroups'}.")
        above = next((each for each in CGROUPS if (each / "cgroup.procs").exists()), None)
        self._cgroup = (above or CGROUPS[0]) / f"ha-lacks-{uuid.uuid4().hex[:8]}"
        try:
            self._cgroup.mkdir()
            (self._cgroup / "pids.max").write_text("max")
        except OSError as error:
            self.close()
            raise Unavailable(f"There is no cgroup that bounds processes: {error.strerror}.") from error

    @staticmethod
    def command(*command: str) -> list[str]:
        """Return the command that runs another one there; its number is that of the other one."""
        return ["unshare", "--mount", "--net", "sh", "-ec", _ENTER, "sh", *command]

    @staticmethod
    def ask(pid: int, url: str) -> str:
        """Ask a process that listens there."""
        return _run("nsenter", "-t", f"{pid}", "-n", sys.executable, "-c", _GET, url)

    def close(self) -> None:
        """Remove the cgroup, once what was in it has ended."""
        if self._cgroup.exists():
            wait_until(lambda: not (self._cgroup / "cgroup.procs").read_text().split(), what="its end")
            self._cgroup.rmdir()

    # --- what is taken away

    @contextmanager
    def tasks(self, *pids: int, but: int = 0) -> Iterator[Callable[[], int]]:
        """Give these processes, and what they start, no more threads and processes, but for so many."""
        group = self._cgroup
        for pid in pids:
            with suppress(ProcessLookupError):  # one of many has ended
                (group / "cgroup.procs").write_text(f"{pid}")
        (group / "pids.max").write_text(f"{int((group / 'pids.current').read_text()) + but}")
        try:
            yield lambda: int((group / "pids.events").read_text().split()[1])
        finally:
            (group / "pids.max").write_text("max")

    def descriptors(self, *pids: int) -> Lack:
        """Give these processes no more descriptors than they have."""
        return _limited(pids, resource.RLIMIT_NOFILE, _first_free)

    def memory(self, *pids: int) -> Lack:
        """Give these processes no more memory than they have mapped."""
        return _limited(pids, resource.RLIMIT_AS, _mapped)

    @contextmanager
    def disk(self, *pids: int) -> Iterator[Callable[[], int]]:
        """Fill the disk of temporary files."""
        with _folder(pids[0]) as folder:
            fill(folder / "rest")
            yield _nobody_counts

    @contextmanager
    def inodes(self, *pids: int) -> Iterator[Callable[[], int]]:
        """Use up the inodes of the disk of temporary files."""
        with _folder(pids[0]) as folder:
            with suppress(OSError):
                for number in range(INODES):
                    (folder / f"{number}").touch()
            yield _nobody_counts

    @contextmanager
    def ports(self, *pids: int) -> Iterator[Callable[[], int]]:
        """Use up the ports that a socket gets which asks for none."""
        # By a descriptor: the process may end before the lack does.
        network = os.open(f"/proc/{pids[0]}/ns/net", os.O_RDONLY)
        inside = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}"]
        before = _run(*inside, "cat", RANGE)
        hold = [*inside, sys.executable, "-c", _HOLD, f"{PORT}"]
        with killed(subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            try:
                _run(*inside, "sh", "-c", f"echo {PORT} {PORT} > {RANGE}")
                yield _nobody_counts
            finally:
                _run(*inside, "sh", "-c", f"echo {before} > {RANGE}")
                os.close(network)


def tree(pid: int) -> list[int]:
    """Return a process and all below it, those above first."""
    found = [pid]
    for each in found:
        with suppress(OSError):  # it has ended
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


@contextmanager
def _limited(pids: Sequence[int], what: int, bound: Callable[[int], int]) -> Iterator[Callable[[], int]]:
    before = resource.prlimit(pids[0], what)
    try:
        for pid in pids:
            with suppress(ProcessLookupError, FileNotFoundError, ValueError):  # one of many has ended
                resource.prlimit(pid, what, (bound(pid), before[1]))
        yield _nobody_counts
    finally:
        for pid in {below for each in pids for below in tree(each)}:  # what they have started has inherited it
            with suppress(ProcessLookupError):
                resource.prlimit(pid, what, before)


def _nobody_counts() -> int:
    return 0


def _first_free(pid: int) -> int:
    taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _mapped(pid: int) -> int:
    (line,) = (each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmSize"))
    return int(line.split()[1]) << 10


@contextmanager
def _folder(pid: int) -> Iterator[Path]:
    # A program that begins may not be in its place yet, and this machine's own memory is filled by nobody.
    theirs, ours = Path(f"/proc/{pid}/root{SHARED}"), Path(SHARED)
    wait_until(lambda: theirs.stat().st_dev != ours.stat().st_dev, what="its own disk")
    # By a descriptor: the process may end before the lack does.
    root = os.open(theirs, os.O_RDONLY | os.O_DIRECTORY)
    folder = Path(f"/proc/self/fd/{root}/taken")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(root)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
