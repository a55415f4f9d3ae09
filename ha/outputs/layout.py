"""The layout of an output's journal: where a batch is on its way to its readers. Pure.

    <leader directory>/out/<output>/
        target=<part>~<of>~<text>                          where batches appear: a Target
        staged/<attempt>/rows/[<column>=<value>/...]       Spark writes here
        staged/<attempt>/files=<part>~<of>~<text>          what it has written: a Record
        ready/<batch id>/                                  decided, by one rename of the attempt; rows are being moved
        done/<batch id // 1000>/<batch id>/files=...       every file of it was in its place; its record stays
    <uri>/[<column>=<value>/...]batch=<batch id>           one rename for each partition: it appears as a whole

An id goes from ``staged`` to ``ready`` to ``done``, and each step is one rename. There is at most one id in ``ready``,
and none below it that is not done. Within a leader directory no path of ``ready`` or ``done`` is ever used again, so a
rename or a deletion that the store executes late finds nothing.
"""

import hashlib

from leader.layout.names import OUT

STAGED, READY, DONE, ROWS = "staged", "ready", "done", "rows"

BUCKET = 1000
"""Batches in one folder of ``done``: one list shows them all."""


def home(name: str, target: str) -> str:
    """Return an output's folder, relative to the leader directory.

    It is named after its target: an output that is moved begins anew, and two outputs never decide for each other.

    Args:
        name: of the output.
        target: path of the directory in which its batches appear, below the root that it shares with the job's.
    """
    return f"{OUT}/{name}-{hashlib.sha256(target.encode()).hexdigest()[:12]}"


def ready(batch: int) -> str:
    """Return a decided batch's folder, relative to the output's."""
    return f"{READY}/{batch}"


def done(batch: int) -> str:
    """Return a complete batch's folder, relative to the output's."""
    return f"{DONE}/{batch // BUCKET}/{batch}"


def place(partition: str, batch: int) -> str:
    """Return where readers find a partition of a batch, relative to the target."""
    return f"{partition}/batch={batch}".lstrip("/")


def hidden(name: str) -> bool:
    """Whether Spark's readers ignore an entry: markers and check sums, but no partition of a column ``_day``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def ids(names: "list[str]") -> list[int]:
    """Return the numbers among these names, sorted."""
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and name == str(int(name)))
