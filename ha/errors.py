"""Every error that this package raises on purpose, in one place to import from."""

from leader.errors import (
    Fenced,
    InvalidName,
    InvalidSettings,
    LeaderError,
    NoLeader,
    NotLeader,
    Unreachable,
)
from store.errors import Refused, StoreError, Unknown

__all__ = [
    "Fenced",
    "InvalidName",
    "InvalidSettings",
    "LeaderError",
    "NoLeader",
    "NotLeader",
    "Refused",
    "StoreError",
    "Unknown",
    "Unreachable",
]
