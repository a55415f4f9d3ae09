"""Which outcome is meant, and how its files and anchors are called."""

import hashlib
import re
from typing import NamedTuple

from ha.drill.outcome import Outcome

_LONGEST = 100
"""Characters of a file's name that come from the drill: with a hash and a suffix, any file system takes it."""


class Key(NamedTuple):
    """What tells outcomes of one report apart; a plain tuple of the three is as good.

    Attributes:
        drill: its name.
        ground: where it ran.
        guard: who guarded the job.
    """

    drill: str
    ground: str
    guard: str

    @classmethod
    def of(cls, outcome: Outcome) -> "Key":
        """Return the key of an outcome."""
        return cls(outcome.drill, outcome.ground, outcome.guard)

    @property
    def stem(self) -> str:
        """A name for files and anchors, in ASCII; what had to be changed for it is told apart by a hash."""
        plain = "-".join(self)
        clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-.")[:_LONGEST]
        if clean == plain:
            return plain
        digest = hashlib.sha256("\0".join(self).encode("utf-8", "surrogatepass")).hexdigest()
        return f"{clean}-{digest[:8]}"

    @property
    def table(self) -> str:
        """Where its Parquet file is, seen from the report's folder."""
        return f"events/{self.stem}.parquet"
