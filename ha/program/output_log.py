"""Output logs: what the runs of a command have written to standard output and error, in files of bounded size.

    <state directory>/hybrid-ha/logs/<job>/<pid>-<run>-<hex>.log      0600, in folders with 0700
    <state directory>/hybrid-ha/logs/<job>/<pid>-<run>-<hex>.log.1    the part before it

The guard of a run writes them. The sidecar keeps the last lines of a run that has failed with the failure, and
``ha job logs`` shows them all. Text is kept as it comes, with whatever secrets a program prints.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PART_BYTES = 8 << 20  # of each of the two files of a run
RUNS = 5  # that are kept of a job on a host
LINES, LAST_BYTES = 50, 4_000  # of a run that has failed, at most


def folder(job: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the logs of a job are on this host."""
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "hybrid-ha", "logs", job)


def new(job: str, run: int, link: Path) -> Path:
    """Begin the log of a run, to which ``link`` leads, and remove those of old runs; returns its path."""
    # Where the state directory cannot be written, the log is ``link`` itself, and goes with it.
    link.unlink(missing_ok=True)
    try:
        (place := folder(job)).mkdir(0o700, parents=True, exist_ok=True)
        for old in runs(job)[: 1 - RUNS]:
            for part in parts(old):
                part.unlink(missing_ok=True)
        path = place / f"{os.getpid()}-{run}-{os.urandom(4).hex()}.log"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        link.symlink_to(path)
    except (OSError, RuntimeError):  # also without any home
        return link
    return path


def runs(job: str) -> list[Path]:
    """Return the logs of a job's runs on this host; the one that was written last is the last."""
    found = []
    with suppress(OSError, RuntimeError):
        for path in folder(job).glob("*.log"):
            with suppress(OSError):  # another sidecar has just removed it
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def parts(path: Path) -> list[Path]:
    """Return the files of a run's log, oldest first."""
    return [each for each in (before(path), path) if each.exists()]


def before(path: Path) -> Path:
    """Return the part before the present one."""
    return path.with_name(f"{path.name}.1")


def last_lines(path: Path) -> str:
    """Return the last lines of a run; empty if it has written nothing, or if its log is gone."""
    try:
        with Path(os.path.realpath(path)).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - LAST_BYTES))
            read = file.read(LAST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    whole = read.partition("\n")[2] if end > LAST_BYTES and "\n" in read[:-1] else read
    return "\n".join(whole.rstrip().splitlines()[-LINES:])
