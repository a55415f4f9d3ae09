"""Metrics for Prometheus: of a process's stores, lookups and leaderships; ``ha.agent`` has those of the agent.

Names and units follow Prometheus's conventions; ``docs/metrics.md`` lists them all. Events are counted as they happen:
:class:`leader.observer.Observer` and :class:`store.counting.CallListener` tell of them. A state is read when Prometheus
asks. No label has values that a stranger can choose, so the jobs that are looked up have none. The label of a job is
``job_name``, because ``job`` is Prometheus's own word for what it scrapes.
"""
