"""The standalone agent: the process of ``ha agent``, and how any process makes its agent, its reader and their metrics.

It has stores, a reader of them and metrics, but no contender.
"""

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.agent.agent import Agent
from ha.agent.ended_jobs import EndedJobs
from ha.agent.lender import Lender
from ha.agent.processes import processes_of
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.metrics.process import Metrics
from leader.contender.runtime import Runtime
from leader.lookup.answers import Looks, Lookups
from leader.lookup.observed import observed
from leader.lookup.reader import Reader
from leader.observer import fan_out
from store.clock import now


def reader_of(stores: Stores, metrics: Metrics | None = None) -> Lookups:
    """Return a reader that asks the stores itself; its answers are recorded, and counted if there are metrics."""
    reader = Reader(
        stores.files,
        stores.zookeeper,
        stores.timing,
        audit=stores.settings.audit,
        processes=processes_of(stores.settings),
    )
    counts = None
    if metrics is not None:
        metrics.lookups.show_fallbacks(reader)
        counts = metrics.lookups.observe
    return observed(reader, fan_out(stores.history.reader(), counts))


def agent_of(stores: Stores, reader: Looks, jobs: Iterable[str], metrics: Metrics | None = None) -> Agent:
    """Return the agent of a process with these stores.

    Args:
        stores: of the process.
        reader: asks the stores.
        jobs: kept warm even if nobody asks for them.
        metrics: show the agent's state; None to show nothing.
    """
    settings = stores.settings
    agent = Agent(reader, stores.snapshots, jobs, audit=settings.audit, fresh=settings.fresh)
    if metrics is not None:
        metrics.registry.register(_AgentMetrics(agent, EndedJobs(stores.files, stores.timing.call_timeout)))
    return agent


class StandaloneAgent:
    """The process of ``ha agent``, as the HTTP API shows it."""

    def __init__(self, settings: Settings) -> None:
        """Connect to nothing yet.

        Raises:
            InvalidSettings: an address is not one.
        """
        self.metrics = Metrics()
        self.stores = self.metrics.stores.open(settings)
        self.reader = reader_of(self.stores, self.metrics)
        self._runtime: Runtime | None = None
        self._lender: Lender | None = None
        if settings.borrows_session and self.stores.snapshots is not None:
            timing = self.stores.timing
            self._runtime = Runtime("agent", timing, self.stores.files, self.stores.zookeeper)
            self._lender = lender = Lender(self._runtime, settings.contender, timing, self.stores.snapshots)
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
    """Shows what an agent was told last of the jobs that it keeps."""

    def __init__(self, agent: Agent, ended: EndedJobs) -> None:
        self._agent, self._ended = agent, ended

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        agent = self._agent
        yield GaugeMetricFamily(
            "ha_agent_writes",
            "1 if this process writes the snapshots of its host; one process on each host does.",
            agent.writes,
        )
        yield GaugeMetricFamily(
            "ha_agent_fresh_seconds", "Time for which an answer that the agent has had may be used.", agent.fresh
        )
        age = GaugeMetricFamily(
            "ha_agent_answer_age_seconds",
            "Time since the agent began the last look that a store answered, for each job that it keeps.",
            labels=["job_name"],
        )
        led = GaugeMetricFamily(
            "ha_agent_job_led", "1 if that answer named a leader; 0 if it said that there is none.", labels=["job_name"]
        )
        ended = GaugeMetricFamily(
            "ha_agent_job_ended",
            "1 if the job has ended for good in this state: FAILED, FINISHED or CANCELED.",
            labels=["job_name", "state"],
        )
        jobs = agent.warmer.jobs
        self._ended.keep(jobs)
        for job in jobs:
            look = agent.warmer.latest(job)
            if look is not None:
                age.add_metric([job], max(0.0, now() - look.started))
                led.add_metric([job], look.answer is not None)
                if (end := self._ended.end(job, look)) is not None:
                    ended.add_metric([job, end.value], 1)
        yield GaugeMetricFamily("ha_agent_jobs", "Jobs that the agent keeps, at most 256.", len(jobs))
        yield age
        yield led
        yield ended


class LenderMetrics(Collector):
    """Shows to how many contenders an agent lends its session."""

    def __init__(self, members: Callable[[], int]) -> None:
        """``members`` says how many contenders are connected."""
        self._members = members

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        yield GaugeMetricFamily(
            "ha_session_lent_to",
            "Contenders of this host that are connected to the agent which lends them its ZooKeeper session.",
            self._members(),
        )
