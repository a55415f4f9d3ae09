"""High availability for PySpark streaming jobs: what people run and import.

``ha.lead`` contends for a job, ``ha.connect`` looks up who leads it. Imports are lazy: a Python worker that looks up
an address does not pay for what a sidecar needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.client import Client, connect
    from ha.leadership import Leadership
    from ha.leading import lead
    from leader.answers import Answer
    from leader.checkpoint import Checkpoint, Metadata
    from leader.status import Status

_PLACES = {
    "Answer": "leader.answers",
    "Checkpoint": "leader.checkpoint",
    "Client": "ha.client",
    "Leadership": "ha.leadership",
    "Metadata": "leader.checkpoint",
    "Status": "leader.status",
    "connect": "ha.client",
    "lead": "ha.leading",
}

__all__ = ["Answer", "Checkpoint", "Client", "Leadership", "Metadata", "Status", "connect", "lead"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ha' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    return getattr(import_module(_PLACES[name]), name)
