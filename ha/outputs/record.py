"""Record: what a batch consists of, kept in the names of empty folders beside its rows.

The rename that decides a batch takes them along. See leader/layout/packed_names.py and decision 51.
"""

import msgspec

FILES = "files"
"""First word of the names that hold a :class:`Record`."""

TARGET = "target"
"""Likewise a :class:`Target`."""

LOST = "lost"
"""Likewise the files whose loss an operator has accepted: a :class:`Record`."""


class Record(msgspec.Struct, frozen=True):
    """The files of a batch.

    Attributes:
        partitions: by the partition's path, such as ``day=1/hour=2``, or empty: of each file its bytes.
    """

    partitions: dict[str, dict[str, int]]

    @property
    def files(self) -> int:
        """How many there are."""
        return sum(len(each) for each in self.partitions.values())

    @property
    def bytes(self) -> int:
        """How much is in them."""
        return sum(sum(each.values()) for each in self.partitions.values())

    def without(self, other: "Record") -> "Record":
        """Return the files that the other does not have, or not as long."""
        left = {
            partition: {
                name: size for name, size in files.items() if other.partitions.get(partition, {}).get(name) != size
            }
            for partition, files in self.partitions.items()
        }
        return Record({partition: files for partition, files in left.items() if files})

    def paths(self) -> list[str]:
        """Return the path of each file, sorted."""
        return sorted(
            f"{partition}/{name}".lstrip("/") for partition, files in self.partitions.items() for name in files
        )


class Target(msgspec.Struct, frozen=True):
    """Where an output's batches appear.

    Attributes:
        path: of the directory, in the file system of the job.
    """

    path: str
