"""Every error that this package raises on purpose, in one place to import from."""

from leader.errors import (
    Fenced,
    InvalidName,
    InvalidSettings,
    LeaderError,
    NoLeader,
    NotLeader,
    Unreachable,
    Unreadable,
)
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, Refused, StoreError, Unknown

__all__ = [
    "AlreadyExists",
    "Conflict",
    "Fenced",
    "Invalid",
    "InvalidName",
    "InvalidSettings",
    "LeaderError",
    "NoLeader",
    "NotFound",
    "NotLeader",
    "Refused",
    "StoreError",
    "Unknown",
    "Unreachable",
    "Unreadable",
]
