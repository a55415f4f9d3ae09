"""What a process tells Prometheus: of its stores, its lookups, its leaderships and its agent.

Names and units follow Prometheus's conventions; ``docs/metrics.md`` lists all of them. What only a user of a store or a
contender knows is counted as it happens; what can be read at any time is read when somebody asks. A label is never
anything that a stranger can choose: there is none for the jobs that are looked up. A job's is ``job_name``, because
``job`` is Prometheus's own word for what it scrapes.
"""
