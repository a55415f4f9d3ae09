"""What happened to a job, as events; who wrote them down, and whether they keep the protocol's promises.

The simulator, the drills and real processes write the same events, so one checker judges them all.
"""
