"""Where a peer's election is in ZooKeeper, and how its grants are numbered.

    /peers/<job>/kazoo/<uuid>__lock__<sequence>           kazoo's contenders: the lowest sequence leads
    /peers/<job>/curator/_c_<uuid>-latch-<sequence>       Curator's, likewise
    /peers/<job>/finished                                 the command has ended with 0: nobody need run it again

Neither recipe has epochs. ZooKeeper hands out the sequences of one parent in rising order, and only the lowest leads,
so a later leader has a higher one: that, counted from 1, serves as its epoch, and its node's name as the id of its
session.
"""

from collections.abc import Iterable

from leader.names import check_job

DIGITS = 10
"""Of the sequence that ZooKeeper appends to a name."""


def path(peer: str, job: str) -> str:
    """Return the parent of a job's contenders.

    Args:
        peer: ``kazoo`` or ``curator``.
        job: the job's name.

    Raises:
        InvalidName: no job can be called that.
    """
    return f"/peers/{check_job(job)}/{peer}"


def finished(job: str) -> str:
    """Return the node that is there once the command has ended with 0.

    Raises:
        InvalidName: no job can be called that.
    """
    return f"/peers/{check_job(job)}/finished"


def epoch(node: str) -> int:
    """Return the number of a contender's node, which grows from leader to leader: 1 or more.

    Args:
        node: its name, to which ZooKeeper has appended a sequence.

    Raises:
        ValueError: the name does not end with a sequence.
    """
    digits = node[-DIGITS:]
    if len(digits) < DIGITS or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{node!r} is no contender's node: it does not end with a sequence.")
    return int(digits) + 1


def in_order(nodes: Iterable[str]) -> list[str]:
    """Return the contenders' nodes, who leads first; others below the same parent are left out."""
    found = []
    for node in nodes:
        try:
            found.append((epoch(node), node))
        except ValueError:
            continue
    return [node for _, node in sorted(found)]
