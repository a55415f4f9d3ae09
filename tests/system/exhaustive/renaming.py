"""Renaming: the changes of names that give a situation the same names as all situations like it."""

from typing import NamedTuple

from tests.system.exhaustive.model import State
from tests.system.exhaustive.naming import EPOCH, SEQUENCE, Renaming, names_of, numbering

SESSIONS = [[f"{index:08x}-0000-0000-0000-{serial:012x}" for serial in range(1, 20)] for index in range(2)]
TOKENS = [[f"{index}-{serial:x}" for serial in range(20)] for index in range(2)]


class Naming(NamedTuple):
    """The new names of a situation, and the free ones."""

    all: Renaming | None
    sides: tuple[Renaming | None, ...]
    sessions: tuple[str, ...]
    tokens: tuple[str, ...]


def naming(state: State) -> Naming:
    store, durable = state.store, state.durable
    names = store.names | durable.names
    for late in state.abandoned:
        names = names | names_of(late.source) | names_of(late.destination)
    for side in state.sides:
        names = names | side.names.used
    sequences = numbering(names.sequences, store.lease.sequence, SEQUENCE, durable.lease.sequence)
    epochs = numbering(names.epochs, store.directory.epoch, EPOCH, durable.directory.epoch)
    sides = []
    for side in state.sides:
        forgotten = side.names.remembered - names.words
        mine = tuple(change for change in sequences if change[0] in side.names.used.sequences)
        ours = tuple(change for change in epochs if change[0] in side.names.used.epochs)
        sides.append(Renaming(mine, ours, forgotten) if mine or ours or forgotten else None)
    free = [tuple(next(name for name in each if name not in names.words) for each in of) for of in (SESSIONS, TOKENS)]
    return Naming(Renaming(sequences, epochs) if sequences or epochs else None, tuple(sides), *free)
