"""Check of retained checkpoints: the newest ones of each query stay, until as many newer ones are there (KEPT)."""

from collections.abc import Iterator

from ha.history.checkpoint_rules import PathTree
from ha.history.events import Stored, Violation
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.names import CHECKPOINTS
from tests.system.simulation.escalation import RETAINED
from tests.system.simulation.sidecar import JOBS
from tests.system.simulation.system import System

Order = tuple[int, int]


def check_retained(system: System) -> Iterator[Violation]:
    """Yield each loss of a checkpoint that was to be kept."""
    for job in JOBS[: system.plan.jobs]:
        tree, before = PathTree(job), set[Order]()
        for event in system.history:
            if not isinstance(event, Stored) or event.job != job:
                continue
            if f"/{CHECKPOINTS}/" not in event.path and "/" in event.path:
                continue
            tree.apply(event)
            after = _orders(tree)
            kept = sorted(before | after)[-RETAINED:]
            if lost := [order for order in kept if order not in after]:
                sentence = f"{event.by} removed checkpoint {lost[0]}, one of the {RETAINED} newest of {job}."
                yield Violation("KEPT", event.at, sentence)
            before = after


def _orders(tree: PathTree) -> set[Order]:
    entries = (CheckpointEntry.parse(name) for name in tree.checkpoints)
    return {entry.checkpoint.order for entry in entries if entry is not None}
