"""How a process's agent stands: read from it when somebody asks."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.agent.agent import Agent
from store.clock import now


class Answering(Collector):
    """Shows what an agent was told last of the jobs that it keeps."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        agent = self._agent
        yield GaugeMetricFamily(
            "ha_agent_writes",
            "1 if this process writes the snapshots of its host; of all on a host one does.",
            agent.writes,
        )
        yield GaugeMetricFamily(
            "ha_agent_fresh_seconds", "Time for which what the agent was told may be used.", agent.fresh
        )
        age = GaugeMetricFamily(
            "ha_agent_answer_age_seconds",
            "Time since the agent began the last look that a store answered, for each job that it keeps.",
            labels=["job_name"],
        )
        led = GaugeMetricFamily(
            "ha_agent_job_led", "1 if that answer named a leader; 0 if it said that there is none.", labels=["job_name"]
        )
        jobs = agent.warm.jobs
        for job in jobs:
            look = agent.warm.latest(job)
            if look is not None:
                age.add_metric([job], max(0.0, now() - look.started))
                led.add_metric([job], look.answer is not None)
        yield GaugeMetricFamily("ha_agent_jobs", "Jobs that the agent keeps, at most 256.", len(jobs))
        yield age
        yield led
