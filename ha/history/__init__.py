"""Histories: what happened to a job as events, their recorder, and a checker of the protocol's promises.

The simulator, the drills and real processes write the same events, so one checker judges them all.
"""
