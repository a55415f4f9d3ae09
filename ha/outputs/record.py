"""Record: what a batch consists of, kept in the names of empty folders beside its rows.

The rename that decides a batch takes them along. See leader/layout/packed_names.py and decision 51.
"""

import posixpath
from collections.abc import Mapping

import msgspec

from ha.outputs import layout

FILES = "files"  # first word of the names that hold a `Record`
NOBODY_KNOWS = -2  # as `Record.after` of a batch whose record was damaged and was made again
TARGET = "target"  # the same for a `Target`
LOST = "lost"  # the same for files whose loss an operator has accepted: a `Record`


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of a batch."""

    # By the partition's path, such as `day=1/hour=2`, or empty: of each file its bytes.
    partitions: dict[str, dict[str, int]]
    flat: bool = False  # whether each partition is one file, which appears beside those of other batches
    rows: dict[str, int] = {}  # of each partition how many there are, if its writer has told; else empty
    plan: str = ""  # digest of the input that Spark had planned for the batch; empty if unknown
    after: int = -1  # id of the batch that was decided before it; -1 for the first one, `NOBODY_KNOWS` after a repair
    # What else was decided, by its kind: the snapshot of a table, how many shards of a topic.
    content: dict[str, int] = {}

    @property
    def files(self) -> int:
        """How many there are."""
        return sum(len(each) for each in self.partitions.values())

    @property
    def bytes(self) -> int:
        """How much is in them."""
        return sum(sum(each.values()) for each in self.partitions.values())

    @property
    def row_count(self) -> int | None:
        """How many rows there are; None if unknown."""
        return sum(self.rows.values()) if self.rows.keys() >= self.partitions.keys() else None

    def joined(self, other: "Record") -> "Record":
        """Return the files of both, which have no partition in common."""
        return msgspec.structs.replace(self, partitions=dict(sorted({**self.partitions, **other.partitions}.items())))

    def without(self, other: "Record") -> "Record":
        """Return the files that the other does not have, or not as long."""
        left = {
            partition: {
                name: size for name, size in files.items() if other.partitions.get(partition, {}).get(name) != size
            }
            for partition, files in self.partitions.items()
        }
        return Record({partition: files for partition, files in left.items() if files}, self.flat)

    def beside(self, other: "Record") -> "Record":
        """Return the files that readers see and the other does not have, or not as long."""
        more = self.without(other).partitions
        seen = {each: {name: files[name] for name in files if not layout.hidden(name)} for each, files in more.items()}
        return Record({partition: files for partition, files in seen.items() if files}, self.flat)

    def part(self, which: int, most: int | None) -> "Record":
        """Return so many of its partitions, all for None; ``which`` of them is a number that changes."""
        names = list(self.partitions)
        if most is None or len(names) <= most:
            return self
        chosen = [names[(which + each) % len(names)] for each in range(most)]
        return Record({each: self.partitions[each] for each in chosen}, self.flat)

    def source(self, partition: str) -> str:
        """Return what one rename takes to its place, below the rows: a partition, or the only file of a flat one."""
        return posixpath.join(partition, next(iter(self.partitions[partition]))) if self.flat else partition

    def place(self, partition: str, batch: int) -> str:
        """Return the place to which it goes, below the target."""
        if not self.flat:
            return layout.place(partition, batch)
        return posixpath.join(partition, layout.file(batch, next(iter(self.partitions[partition]))))

    def folder(self, partition: str, batch: int) -> str:
        """Return the folder with the files of a partition, below the target."""
        return partition if self.flat else layout.place(partition, batch)

    def places(self, batch: int) -> list[str]:
        """Return where readers find each file, below the target, behind each other by partition."""
        return [
            posixpath.join(self.folder(partition, batch), layout.file(batch, name) if self.flat else name)
            for partition, files in sorted(self.partitions.items())
            for name in sorted(files)
        ]

    def standing(self, batch: int, listed: Mapping[str, Mapping[str, int]]) -> "Record":
        """Return what of it is in its place, by the bytes of each file in the folder of each partition that has one."""
        if not self.flat:
            return Record({partition: dict(sizes) for partition, sizes in listed.items()})
        found = {}
        for partition, sizes in listed.items():
            names = {name: layout.file(batch, name) for name in self.partitions[partition]}
            if here := {name: sizes[there] for name, there in names.items() if there in sizes}:
                found[partition] = here
        return Record(found, flat=True)

    def paths(self) -> list[str]:
        """Return the path of each file, sorted."""
        return sorted(
            f"{partition}/{name}".lstrip("/") for partition, files in self.partitions.items() for name in files
        )


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an output's batches appear."""

    path: str  # of the directory, in the file system of the job
    flat: bool = False  # whether a partition of a batch is one file there
    kind: str = ""  # of a table or a topic, such as `iceberg`; nothing is at the path then
    place: str = ""  # its name
    format: str = ""  # of the files, such as `parquet`; empty if unknown
    columns: tuple[str, ...] = ()  # of partitions; known if the format is
