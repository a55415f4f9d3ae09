"""Record: what a batch consists of, kept in the names of empty folders beside its rows.

The rename that decides a batch takes them along. See leader/layout/packed_names.py and decision 51.
"""

from collections.abc import Mapping

import msgspec

from ha.outputs import layout

FILES = "files"
"""First word of the names that hold a :class:`Record`."""

TARGET = "target"
"""Likewise a :class:`Target`."""

LOST = "lost"
"""Likewise the files whose loss an operator has accepted: a :class:`Record`."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of a batch.

    Attributes:
        partitions: by the partition's path, such as ``day=1/hour=2``, or empty: of each file its bytes.
        flat: whether each partition is one file, which appears beside those of other batches.
        rows: of each partition how many there are, if its writer has told; else empty.
    """

    partitions: dict[str, dict[str, int]]
    flat: bool = False
    rows: dict[str, int] = {}

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
        """How many rows there are; None if nobody has told."""
        return sum(self.rows.values()) if self.rows.keys() >= self.partitions.keys() else None

    def without(self, other: "Record") -> "Record":
        """Return the files that the other does not have, or not as long."""
        left = {
            partition: {
                name: size for name, size in files.items() if other.partitions.get(partition, {}).get(name) != size
            }
            for partition, files in self.partitions.items()
        }
        return Record({partition: files for partition, files in left.items() if files}, self.flat)

    def standing(self, batch: int, listed: Mapping[str, Mapping[str, int]]) -> "Record":
        """Return what of it is in its place.

        Args:
            batch: its id.
            listed: by partition, the bytes of each file in its folder; a partition that has no folder is left out.
        """
        if not self.flat:
            return Record({partition: dict(sizes) for partition, sizes in listed.items()})
        found = {}
        for partition, sizes in listed.items():
            names = {name: layout.file(batch, name, flat=True) for name in self.partitions[partition]}
            if here := {name: sizes[there] for name, there in names.items() if there in sizes}:
                found[partition] = here
        return Record(found, flat=True)

    def paths(self) -> list[str]:
        """Return the path of each file, sorted."""
        return sorted(
            f"{partition}/{name}".lstrip("/") for partition, files in self.partitions.items() for name in files
        )


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where an output's batches appear.

    Attributes:
        path: of the directory, in the file system of the job.
        flat: whether a partition of a batch is one file there.
    """

    path: str
    flat: bool = False
