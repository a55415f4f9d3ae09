"""Checkpoint list: one listing of a job's checkpoints, with the counter and the retained checkpoints of each query.

Nothing is skipped: an entry that cannot be read may be the newest checkpoint, so it is an error.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from leader.errors import Unreadable
from leader.layout.checkpoint import Checkpoint, CheckpointEntry
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.names import CHECKPOINTS, LeaderDirectory
from store.files import Files

_NEXT = re.compile(r"next=([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class CheckpointList:
    """The counter and the entries."""

    next_id: int  # the checkpoint id that will be handed out next
    entries: Mapping[str, tuple[CheckpointEntry, ...]]  # of each query, the newest one last

    def newest(self, query: str) -> CheckpointEntry | None:
        """The entry that counts."""
        entries = self.entries.get(query)
        return entries[-1] if entries else None

    def retained(self, query: str) -> list[Checkpoint]:
        """The query's checkpoints, the newest one last; each stands once, even if it was written more than once."""
        last = {entry.checkpoint.order: entry.checkpoint for entry in self.entries.get(query, ())}
        return list(last.values())

    def replaced(self, query: str, entries: list[CheckpointEntry]) -> "CheckpointList":
        """The same with these entries of that query, the newest one last."""
        return replace(self, entries=MappingProxyType({**self.entries, query: tuple(entries)}))

    def state(self, job: str, directory: LeaderDirectory) -> CheckpointState:
        """The part of it that readers get."""
        latest = MappingProxyType({query: entries[-1].checkpoint for query, entries in self.entries.items()})
        return CheckpointState(job, directory.epoch, directory.session_id, self.next_id, latest)


def names(files: Files, job: str, directory: LeaderDirectory) -> list[str]:
    """Return the names of a job's checkpoints, for :func:`parse`: one list. NotFound if the leader has changed."""
    return [entry.name for entry in files.list(folder(job, directory))]


def folder(job: str, directory: LeaderDirectory) -> str:
    """The path of a job's checkpoints."""
    return f"{job}/{directory.name}/{CHECKPOINTS}"


def parse(names: Iterable[str], job: str, directory: LeaderDirectory) -> CheckpointList:
    """Read the names, which are in no particular order; Unreadable if one is no checkpoint's nor the counter's."""
    next_id = 1
    found: dict[str, list[CheckpointEntry]] = {}
    for name in names:
        if match := _NEXT.fullmatch(name):
            next_id = max(next_id, int(match[1]))
        elif entry := CheckpointEntry.parse(name):
            found.setdefault(entry.checkpoint.query, []).append(entry)
        else:
            raise Unreadable(
                f"{name!r} among the checkpoints of job {job!r} cannot be read, and may be the newest one: mend its "
                f"name, or remove it from {folder(job, directory)}, or use the version of ha that has written it."
            )
    entries = {query: tuple(sorted(each, key=lambda entry: entry.order)) for query, each in found.items()}
    return CheckpointList(next_id, MappingProxyType(entries))
