"""The standalone agent, ``ha host agent``, and how any process makes its agent, its reader and their metrics.

It has stores, a reader of them and metrics, but no contender. Its metrics also say which jobs have ended for good, for
an alert that rings without a sidecar: those of a job that has failed end, and their metrics with them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.agent.agent import Agent
from ha.agent.processes import processes_of
from ha.agent.shared_session import Lender
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.metrics.process_metrics import Metrics
from ha.metrics.tables import Table, families
from leader.contender.runtime import Runtime
from leader.job.status import Status, pick
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Look, Looks, Lookups
from leader.lookup.observed import observed
from leader.lookup.reader import Reader
from leader.observer import fan_out
from store.bounded import BoundedFiles
from store.clock import now
from store.files import Entry
from store.outcome import Outcome

AGAIN_S = 60.0  # between two looks at a job that has no leader, and that has not ended


@dataclass(slots=True, eq=False)
class _Seen:
    leader: LeaderDirectory
    ended: Status | None = None
    again_at: float = float("-inf")


class EndedJobs:
    """The ends of jobs without a leader. It is asked by one thread at a time, and looks in the background.

    A look is one list of the leader directory: one a minute while the job has not ended, and none once it has ended
    under the known leader.
    """

    def __init__(self, files: BoundedFiles, call_timeout: float) -> None:
        """Look at nothing yet."""
        self._files, self._timeout = files, call_timeout
        self._seen: dict[str, _Seen] = {}

    def end(self, job: str, look: Look) -> Status | None:
        """Return how a job has ended for good, as far as that is known by now; None if it has not."""
        # `look`: the agent's last look at its leader.
        known = look.known
        if look.answer is not None or known is None or not known.epoch:
            self._seen.pop(job, None)
            return None
        leader = LeaderDirectory(known.epoch, known.session_id)
        seen = self._seen.get(job)
        if seen is None or seen.leader != leader:
            seen = self._seen[job] = _Seen(leader)
        if seen.ended is None and now() >= seen.again_at:
            seen.again_at = now() + AGAIN_S
            self._look(job, seen)
        return seen.ended

    def keep(self, jobs: list[str]) -> None:
        """Forget all other jobs."""
        for job in self._seen.keys() - set(jobs):
            del self._seen[job]

    def _look(self, job: str, seen: _Seen) -> None:
        path = f"{job}/{seen.leader.name}"

        def listed(outcome: Outcome[list[Entry]]) -> None:
            found = pick(entry.name for entry in outcome.value) if outcome.done and outcome.value else None
            if found is not None and found.status.globally_terminal:
                seen.ended = found.status

        self._files.submit("agent_state", lambda files: files.list(path), self._timeout, listed)


def reader_of(stores: Stores, metrics: Metrics | None = None) -> Lookups:
    """Return a reader that asks the stores itself; its answers are recorded, and counted if there are metrics."""
    reader = Reader(
        stores.files,
        stores.zookeeper,
        stores.timing,
        audit=stores.settings.leadership.audit,
        processes=processes_of(stores.settings),
    )
    counts = None
    if metrics is not None:
        metrics.lookups.show_fallbacks(reader)
        counts = metrics.lookups.observe
    return observed(reader, fan_out(stores.history.reader(), counts))


def agent_of(stores: Stores, reader: Looks, jobs: Iterable[str], metrics: Metrics | None = None) -> Agent:
    """Return the agent of a process with these stores."""
    # `reader`: asks the stores. `jobs`: kept warm even if no process asks for them. `metrics`: show the agent's state;
    # None to show nothing.
    settings = stores.settings
    agent = Agent(reader, stores.snapshots, jobs, audit=settings.leadership.audit, fresh=settings.leadership.fresh)
    if metrics is not None:
        metrics.registry.register(_AgentMetrics(agent, EndedJobs(stores.files, stores.timing.call_timeout)))
    return agent


class StandaloneAgent:
    """The process of ``ha host agent``, as the HTTP API shows it."""

    def __init__(self, settings: Settings) -> None:
        """Connect to nothing yet. InvalidSettings: an address is not one."""
        self.metrics = Metrics()
        self.stores = Stores(settings)
        self.metrics.stores.show(self.stores.files, self.stores.zookeeper)
        self.reader = reader_of(self.stores, self.metrics)
        self._runtime: Runtime | None = None
        self._lender: Lender | None = None
        if settings.leadership.borrows_session and self.stores.snapshots is not None:
            timing = self.stores.timing
            self._runtime = Runtime("agent", timing, self.stores.files, self.stores.zookeeper)
            self._lender = lender = Lender(self._runtime, settings.leadership.contender, timing, self.stores.snapshots)
            self.metrics.registry.register(LenderMetrics(lambda: lender.members))

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return nothing: this process contends for no job."""
        return {}

    def close(self) -> None:
        """Close the stores."""
        if self._lender is not None and self._runtime is not None:
            self._lender.close()
            self._runtime.close()
        self.stores.close()


class _AgentMetrics(Collector):
    """Shows the latest answers that an agent has about its jobs."""

    def __init__(self, agent: Agent, ended: EndedJobs) -> None:
        self._agent, self._ended = agent, ended

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        jobs = self._agent.warmer.jobs
        self._ended.keep(jobs)
        looks = [([job], look) for job in jobs if (look := self._agent.warmer.latest(job)) is not None]
        yield from families(GaugeMetricFamily, AGENT, [], [([], self._agent)])
        yield from families(GaugeMetricFamily, LOOK, ["job_name"], looks)
        meaning = "1 if the job has ended for good in this state: FAILED, FINISHED or CANCELED."
        ended = GaugeMetricFamily("ha_agent_job_ended", meaning, labels=["job_name", "state"])
        for (job,), look in looks:
            if (end := self._ended.end(job, look)) is not None:
                ended.add_metric([job, end.value], 1)
        yield ended


AGENT: Table[Agent] = {
    "ha_agent_writes": (
        "1 if this process writes the snapshots of its host; one process on each host does.",
        lambda agent: agent.writes,
    ),
    "ha_agent_fresh_seconds": (
        "Time for which an answer that the agent has had may be used.",
        lambda agent: agent.fresh,
    ),
    "ha_agent_jobs": ("Jobs that the agent keeps, at most 256.", lambda agent: len(agent.warmer.jobs)),
}

LOOK: Table[Look] = {
    "ha_agent_answer_age_seconds": (
        "Time since the agent began the last look that a store answered.",
        lambda look: max(0.0, now() - look.started),
    ),
    "ha_agent_job_led": (
        "1 if that answer named a leader; 0 if it said that there is none.",
        lambda look: look.answer is not None,
    ),
}


class LenderMetrics(Collector):
    """Shows to how many contenders an agent lends its session."""

    def __init__(self, members: Callable[[], int]) -> None:
        """``members`` says how many contenders are connected."""
        self._members = members

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        meaning = "Contenders of this host to which the agent lends its ZooKeeper session."
        yield GaugeMetricFamily("ha_session_lent_to", meaning, self._members())
