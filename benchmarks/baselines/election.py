"""Nodes of a baseline's election in ZooKeeper, and the numbers of its grants.

    /baselines/<job>/kazoo/<uuid>__lock__<sequence>           kazoo's contenders: the lowest sequence leads
    /baselines/<job>/curator/_c_<uuid>-latch-<sequence>       Curator's, likewise
    /baselines/<job>/finished                             the command has ended with 0: nobody runs it again

Neither recipe has epochs. ZooKeeper hands out the sequences of one parent in rising order, and only the lowest one
leads, so a later leader has a higher sequence. That sequence, counted from 1, serves as the epoch, and the name of the
node as the id of the session.
"""

from collections.abc import Iterable

from leader.layout.names import check_job

SEQUENCE_DIGITS = 10  # Length of the sequence that ZooKeeper appends to a name


def path(baseline: str, job: str) -> str:
    """Return the parent of a job's contenders."""
    return f"/baselines/{check_job(job)}/{baseline}"


def finished(job: str) -> str:
    """Return the node that exists once the command has ended with 0."""
    return f"/baselines/{check_job(job)}/finished"


def epoch(node: str) -> int:
    """Return the number of a contender's node, 1 or more; it grows from leader to leader."""
    digits = node[-SEQUENCE_DIGITS:]
    if len(digits) < SEQUENCE_DIGITS or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{node!r} is no contender's node: it does not end with a sequence.")
    return int(digits) + 1


def in_order(nodes: Iterable[str]) -> list[str]:
    """Return the contenders' nodes, the leader first; other nodes below the same parent are left out."""
    found = []
    for node in nodes:
        try:
            found.append((epoch(node), node))
        except ValueError:
            continue
    return [node for _, node in sorted(found)]
