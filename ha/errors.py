"""Errors that this package raises on purpose, all importable from here."""

from leader.errors import (
    Fenced,
    InvalidName,
    InvalidSettings,
    LeaderError,
    NoLeader,
    NotLeader,
    OutputLost,
    QueryFailed,
    RegionBehind,
    TooManyDeadLetters,
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
    "OutputLost",
    "QueryFailed",
    "Refused",
    "RegionBehind",
    "StoreError",
    "TooManyDeadLetters",
    "Unknown",
    "Unreachable",
    "Unreadable",
]
