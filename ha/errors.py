"""Errors that this package raises on purpose, all importable from here: each is a ``HaError``."""

from ha.checkpoints.renumbering import Doubt
from ha.jobmaster.call_errors import CallRefused, CallUnknown
from ha.jobmaster.master import NoEndpoint
from ha.jobmaster.verdict import Rejected
from leader.errors import (
    Fenced,
    ForeignBatch,
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
from store.errors import AlreadyExists, Conflict, HaError, Invalid, NotFound, Refused, StoreError, Unknown

__all__ = [
    "AlreadyExists",
    "CallRefused",
    "CallUnknown",
    "Conflict",
    "Doubt",
    "Fenced",
    "ForeignBatch",
    "HaError",
    "Invalid",
    "InvalidName",
    "InvalidSettings",
    "LeaderError",
    "NoEndpoint",
    "NoLeader",
    "NotFound",
    "NotLeader",
    "OutputLost",
    "QueryFailed",
    "Refused",
    "RegionBehind",
    "Rejected",
    "StoreError",
    "TooManyDeadLetters",
    "Unknown",
    "Unreachable",
    "Unreadable",
]
