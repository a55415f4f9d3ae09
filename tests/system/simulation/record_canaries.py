"""Canaries of what a leader records: endpoints, their mirror in ZooKeeper, checkpoints."""

from leader.election.announcement import Announcement, Change
from leader.election.mirror import Mirror
from leader.job.checkpoints import Checkpoints
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.checkpoint_list import CheckpointList
from leader.layout.information import LeaderInformation
from leader.layout.znodes import DeleteNode, NodeCommand
from tests.system.simulation.canary import KEPT, R2, S4, S5, Canary, of
from tests.system.simulation.directed import draw_forgotten_batches

_peek = Checkpoints._peek


def _peek_and_acknowledge(self: Checkpoints) -> object:
    found = _peek(self)
    self._acknowledged.update({query: entries[-1] for query, entries in found.entries.items()})
    return found


def _unknown_is_forgotten(self: Announcement, change: Change) -> None:
    del self, change


_next = Mirror._next


def _next_deletes_whatever_is_there(self: Mirror, now: float) -> NodeCommand | None:
    if self._wanted is None and self._sent is not None and self._read and self._node is not None:
        return DeleteNode(self.path, self._node.version)
    return _next(self, now)


def _published_before_hdfs(self: Announcement) -> LeaderInformation | None:
    information = self.information
    if information is None or information.version == self._published_version:
        return None
    self._published_version = information.version
    return information


def _drop_before_adding(self: Checkpoints, found: CheckpointList, entry: CheckpointEntry) -> None:
    for each in found.entries.get(entry.checkpoint.query, ()):
        self._delete(each.name)


def _newest_gives_way(self: Checkpoints, found: CheckpointList, entry: CheckpointEntry) -> CheckpointEntry | None:
    entries = found.entries.get(entry.checkpoint.query, ())
    return entries[-1] if len(entries) >= self._most else None


def _read_add_write(self: Checkpoints) -> int:
    number = self._read().next_id
    self._make(f"next={number + 1}").result()
    self._delete(f"next={number}")
    return number


RECORDS = (
    Canary(
        "a node of another session is deleted",
        of(Mirror, _next=_next_deletes_whatever_is_there),
        frozenset({"OWN"}),
        60,
    ),
    Canary(
        "a batch that is listed is taken for published",
        of(Checkpoints, _peek=_peek_and_acknowledge),
        S5,
        30,
        draw_forgotten_batches,
    ),
    Canary(
        "endpoints that are listed are taken for published",
        of(Announcement, on_unknown=_unknown_is_forgotten),
        R2,
        500,
    ),
    Canary("ZooKeeper is written before HDFS", of(Announcement, newly_published=_published_before_hdfs), R2, 30),
    Canary(
        "old checkpoints are dropped before the new one is there",
        of(Checkpoints, _gives_way=_drop_before_adding),
        S4,
        30,
    ),
    Canary("the newest checkpoint gives way", of(Checkpoints, _gives_way=_newest_gives_way), KEPT, 30),
    Canary("the counter reads, adds and writes", of(Checkpoints, _take=_read_add_write), S4, 30),
)
