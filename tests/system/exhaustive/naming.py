"""Naming: names as the search compares them. Numbers are relative to those in the store; unused names are forgotten.

Sequences and epochs only grow, and session ids are always new. So two situations that are alike but for their age would
differ in every name. Here the lease in the store always has the sequence ``SEQUENCE`` and the leader directory the
epoch ``EPOCH``; what is lower than can be seen keeps its order only, and a session id that nobody mentions any more is
given out again.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

from msgspec import structs

from leader.election.events import FilesCommand, ListRecord, MakeDirectory, Rename
from leader.election.state import PendingOperation, Phase
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from leader.timing import PAST
from tests.system.exhaustive.snapshot import NOBODY, Frozen

SEQUENCE = 100
EPOCH = 50

_DIRECTORY = re.compile(r"(?<![0-9a-f~-])([0-9]{10})-([0-9a-f]{8}-[0-9a-f-]{27})")
_LEASE = re.compile(r"lease~([0-9]{10})~")


class Renaming(NamedTuple):
    """The changed numbers, and the session ids and tokens that nothing mentions any more."""

    sequences: tuple[tuple[int, int], ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    forgotten: frozenset[str] = frozenset()


class Names(NamedTuple):
    sequences: frozenset[int] = frozenset()
    epochs: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()
    """Session ids and tokens."""

    def __or__(self, other: "Names") -> "Names":
        return Names(self.sequences | other.sequences, self.epochs | other.epochs, self.words | other.words)


def numbering(used: frozenset[int], present: int, target: int, durable: int) -> tuple[tuple[int, int], ...]:
    """Return new numbers: the present one becomes ``target``; those lower than the durable one only keep their order.

    All others keep their distance, since the next number counts from one of these. Returns only the changes.
    """
    lower = sorted((number for number in used if number < durable), reverse=True)
    new = {number: number - present + target for number in used if number >= durable}
    new.update((number, durable - present + target - 1 - rank) for rank, number in enumerate(lower))
    return tuple(sorted((old, number) for old, number in new.items() if old != number))


@cache
def names_of(text: str) -> Names:
    directories = [LeaderDirectory(int(epoch), session) for epoch, session in _DIRECTORY.findall(text)]
    leases = [lease for part in text.split("/") if (lease := Lease.parse(part))]
    words = [*(lease.owner for lease in leases), *(directory.session_id for directory in directories)]
    return Names(
        frozenset(lease.sequence for lease in leases),
        frozenset(directory.epoch for directory in directories),
        frozenset([*words, *(lease.attestation for lease in leases if lease.attestation)]),
    )


def mentioned(frozen: Frozen) -> Names:
    texts = [frozen.directory.name] if frozen.directory else []
    texts += [lease.name for lease in (frozen.seen, frozen.held, frozen.renamed) if lease]
    if not _idle(frozen):
        texts += [lease.name for lease, _ in frozen.promises]
    if frozen.pending is not None:
        texts += paths_of(frozen.pending.command)
    names = reduce(or_, map(names_of, texts), Names(frozenset({frozen.highest} if frozen.highest >= 0 else ())))
    words = {frozen.token, frozen.checking, *(token for token, _ in frozen.attested)}
    if not _idle(frozen):
        words.add(frozen.session_id)
    return names | Names(words=_true(words))


def remembered(frozen: Frozen) -> frozenset[str]:
    """Return the names that a mind only keeps in case it meets them again."""
    words = {*frozen.own_sessions, frozen.gone, frozen.present, frozen.orphan, frozen.hearing}
    if _idle(frozen):
        words.add(frozen.session_id)
    return _true(words)


def _true(words: Iterable[str | None]) -> frozenset[str]:
    return frozenset(word for word in words if word is not None and word != NOBODY)


def _idle(frozen: Frozen) -> bool:
    """Whether the mind keeps its last try only in case it meets it; a pending try is in its command, too."""
    return frozen.phase is Phase.STANDBY


def paths_of(command: FilesCommand) -> list[str]:
    match command:
        case Rename(source, destination):
            return [source, destination]
        case MakeDirectory(path):
            return [path]
        case ListRecord(directory):
            return [directory.name]
        case _:
            return []


class Renamer:
    def __init__(self, renaming: Renaming) -> None:
        self._sequences, self._epochs = dict(renaming.sequences), dict(renaming.epochs)
        self._forgotten = renaming.forgotten

    def mind(self, frozen: Frozen) -> Frozen:
        gone, present = (None if token in self._forgotten else token for token in (frozen.gone, frozen.present))
        orphan = None if self._forgotten.intersection(frozen.orphan or ()) else frozen.orphan
        over = frozen.hearing in self._forgotten
        forgets_try = frozen.session_id in self._forgotten
        return frozen._replace(
            session_id=NOBODY if forgets_try else frozen.session_id,
            directory=self.directory(frozen.directory) if frozen.directory else None,
            pending=self._step(frozen.pending) if frozen.pending else None,
            seen=self.lease(frozen.seen) if frozen.seen else None,
            own_sessions=tuple(sorted({each for each in frozen.own_sessions if each not in self._forgotten})),
            gone=gone,
            present=present,
            orphan=orphan,
            hearing=None if over else frozen.hearing,
            heard_from=PAST if over else frozen.heard_from,
            heard=(False, None) if over else frozen.heard,
            held=self.lease(frozen.held) if frozen.held else None,
            renamed=self.lease(frozen.renamed) if frozen.renamed else None,
            highest=-1 if forgets_try else self._sequences.get(frozen.highest, frozen.highest),
            promises=() if forgets_try else tuple((self.lease(lease), start) for lease, start in frozen.promises),
        )

    def lease(self, lease: Lease) -> Lease:
        return structs.replace(lease, sequence=self._sequences.get(lease.sequence, lease.sequence))

    def directory(self, directory: LeaderDirectory) -> LeaderDirectory:
        return structs.replace(directory, epoch=self._epochs.get(directory.epoch, directory.epoch))

    def path(self, path: str) -> str:
        def epoch(match: re.Match[str]) -> str:
            return f"{self._epochs.get(int(match[1]), int(match[1])):010d}-{match[2]}"

        def sequence(match: re.Match[str]) -> str:
            return f"lease~{self._sequences.get(int(match[1]), int(match[1])):010d}~"

        return _LEASE.sub(sequence, _DIRECTORY.sub(epoch, path))

    def rename(self, command: Rename) -> Rename:
        """A command for the file system under other numbers."""
        return Rename(self.path(command.source), self.path(command.destination))

    def _step(self, step: PendingOperation) -> PendingOperation:
        return PendingOperation(
            self._command(step.command),
            self.lease(step.lease) if step.lease else None,
            self.directory(step.directory) if step.directory else None,
            replace(step.change, command=self._command(step.change.command)) if step.change else None,
        )

    def _command(self, command: Any) -> Any:
        match command:
            case Rename():
                return self.rename(command)
            case MakeDirectory(path):
                return MakeDirectory(self.path(path))
            case ListRecord(directory):
                return ListRecord(self.directory(directory))
            case _:
                return command
