"""High availability for PySpark streaming jobs: the commands and the public API.

``ha.lead`` contends for a job; ``ha.connect`` looks up its leader. Imports are lazy: a Python worker that looks up
an address does not pay for what a sidecar needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.client import Client, connect
    from ha.leadership.lead import lead
    from ha.leadership.leadership import Leadership
    from leader.job.status import Status
    from leader.layout.checkpoint import Checkpoint, Metadata
    from leader.lookup.answers import Answer

_PLACES = {
    "Answer": "leader.lookup.answers",
    "Checkpoint": "leader.layout.checkpoint",
    "Client": "ha.client",
    "Leadership": "ha.leadership.leadership",
    "Metadata": "leader.layout.checkpoint",
    "Status": "leader.job.status",
    "connect": "ha.client",
    "lead": "ha.leadership.lead",
}

__all__ = ["Answer", "Checkpoint", "Client", "Leadership", "Metadata", "Status", "connect", "lead"]


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    from ha.hosts import own_packages  # noqa: PLC0415

    if name == "errors":  # the docs name errors as ha.errors.Fenced, after `import ha` alone
        return import_module("ha.errors")
    if name not in _PLACES:
        raise AttributeError(f"module 'ha' has no attribute {name!r}")
    own_packages.check()
    return getattr(import_module(_PLACES[name]), name)
