"""One process that contends: its stores, its runtime, its contender, and what can be seen of them."""

import math
from collections.abc import Callable
from typing import Any

from ha.agent.alone import reader_of
from ha.listener import open_listener
from ha.metrics.contending import ContendingMetrics
from ha.metrics.process import Metrics
from ha.metrics.standing import Standing
from ha.settings import Settings
from leader.candidacy import Candidacy, Leads
from leader.contender import Contender
from leader.information import decode
from leader.runtime import Runtime
from store.clock import now

ANSWER_WITHIN = 2.0
"""Seconds within which the contender's thread answers if it is healthy: it never waits for anything."""


class Node:
    """What a sidecar and a daemon have in common."""

    def __init__(self, settings: Settings) -> None:
        """Start the runtime's thread; connect to ZooKeeper in the background.

        Raises:
            InvalidSettings: an address is not one, or is taken, or two durations clash.
        """
        self.settings = settings
        self.commands: dict[str, Callable[[], dict[str, Any]]] = {}
        """By job, what can be seen of its command; empty for a process that runs none."""
        self.metrics = Metrics()
        self.stores = self.metrics.stores.open(settings)
        zookeeper = self.stores.zookeeper
        self.listener = open_listener(settings, zookeeper.address.servers if zookeeper is not None else ())
        self.runtime = Runtime(settings.contender, self.stores.timing, self.stores.files, self.stores.zookeeper)
        self._contending = ContendingMetrics(self.metrics.registry, self.metrics.changes)
        environment = self._contending.environment(self.runtime, settings.contender)
        self.contender = Contender.make(
            environment,
            settings.contender,
            self.stores.timing,
            self.listener.whereabouts if self.listener else None,
        )
        self.runtime.attach(self.contender)
        self.own_reader = reader_of(self.stores)
        self.reader = self.metrics.lookups.lookups(self.stores.history.lookups(self.own_reader))
        self.metrics.lookups.fallbacks(self.own_reader)
        self.metrics.registry.register(Standing(self.statuses))

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return what can be seen of every job, by name.

        Raises:
            TimeoutError: the contender's thread does not answer; it should be killed.
        """
        found = self.runtime.ask(
            lambda: {job: _status(each) for job, each in self.contender.candidacies.items()}, ANSWER_WITHIN
        )
        return {job: {**each, "command": self._command(job)} for job, each in found.items()}

    def seen(self) -> list[dict[str, Any]]:
        """Return the same as a list."""
        return list(self.statuses().values())

    def _command(self, job: str) -> dict[str, Any] | None:
        return self.commands[job]() if job in self.commands else None

    def leads(self, leads: Leads) -> Leads:
        """Return who is to be told about leadership, so that it is recorded and counted."""
        return self._contending.leads(self.stores.history.leads(leads))

    def holds(self, job: str) -> bool:
        """Whether this process holds the job's lease, or is about to give it back."""
        return self.runtime.ask(lambda: self.contender.candidacies[job].busy, ANSWER_WITHIN)

    def close(self) -> None:
        """Stop the runtime and close the stores; last of all, let standbys see that this is the end."""
        self.runtime.close()
        self.stores.close()
        if self.listener is not None:
            self.listener.close()


def _status(candidacy: Candidacy) -> dict[str, Any]:
    election, at = candidacy.election, now()
    until, lease, information = election.leads_until(), election.lease, election.information
    seen = candidacy.information.publication.seen
    copied = decode(seen, election.job) if seen is not None else None
    return {
        "job": election.job,
        "contender": election.contender,
        "phase": election.phase.value,
        "is_leader": election.is_leader(at),
        "belief_seconds": round(max(0.0, until - at), 3) if math.isfinite(until) else 0.0,
        "epoch": election.directory.epoch if election.directory else None,
        "session_id": election.directory.session_id if election.directory else None,
        "endpoints": dict(information.endpoints) if information else {},
        "lease": {"mode": lease.mode.value, "sequence": lease.sequence, "holder": lease.contender} if lease else None,
        "zookeeper": election.attestation.usable,
        "copy_epoch": copied.epoch if copied is not None else None,
        "copy_repairs": candidacy.information.publication.repairs,
    }
