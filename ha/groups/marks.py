"""Marks: the names that a move leaves in a job's directory, at the root to which the job goes. Pure.

    <target>/<job>/moving/...                         the copy, while it is made
    <target>/<job>/arriving~<sequence>~<leader>       the complete copy; one rename makes it <leader>, and decides
    <target>/<job>/undone~<sequence>~<leader>         the same copy: the move was undone, and it never becomes <leader>
    <target>/<job>/arrived~<sequence>                 made with the copy; its time says when the job came
    <source>/<job>/moved~<sequence>~<target>          the old leader directory, until that is decided; then empty

The last one is a pointer, see :mod:`ha.placement.place`. A sequence is higher than all that there were.
"""

import re
from collections.abc import Iterable

import msgspec

from leader.layout.names import LeaderDirectory

COPYING = "moving"

ARRIVING, UNDONE, ARRIVED = "arriving", "undone", "arrived"

_COPY = re.compile(rf"({ARRIVING}|{UNDONE})~([1-9][0-9]{{0,8}})~([0-9a-f-]+)")
_ARRIVED = re.compile(rf"{ARRIVED}~([1-9][0-9]{{0,8}})")


class CopyMark(msgspec.Struct, frozen=True):
    """The complete copy of a leader directory, that becomes one or never does."""

    sequence: int  # of the move
    undone: bool  # whether it never does
    leader: LeaderDirectory  # the leader directory that it becomes

    @property
    def name(self) -> str:
        """The entry's name."""
        return f"{UNDONE if self.undone else ARRIVING}~{self.sequence}~{self.leader.name}"

    @classmethod
    def parse(cls, name: str) -> "CopyMark | None":
        """Read a name; None if it is not a copy's."""
        match = _COPY.fullmatch(name)
        leader = LeaderDirectory.parse(match[3]) if match else None
        return cls(int(match[2]), match[1] == UNDONE, leader) if match and leader else None


def copies_in(names: Iterable[str]) -> list[CopyMark]:
    """Return the copies among the names in a job's directory, the newest first."""
    return sorted(filter(None, map(CopyMark.parse, names)), key=lambda each: -each.sequence)


def arrived(sequence: int) -> str:
    """Return the name of the entry whose time says when the job came."""
    return f"{ARRIVED}~{sequence}"


def arrival(name: str) -> int:
    """Return the sequence of the move that made such an entry; 0 if it is none."""
    match = _ARRIVED.fullmatch(name)
    return int(match[1]) if match else 0


def is_scratch(name: str) -> bool:
    """Whether an entry is only of use to the process that makes a move, or asks a root for its time."""
    return name == COPYING or name.startswith(f"{COPYING}-")
