"""Failover drills: a real streaming job, real stores, one fault at a time, and a judgement of what came of it.

    catalogue ──> drill <── stage ──> ground (sandbox | containers)
                              └────> judge ──> outcome ──> report

A drill says what is broken and what may come of it; a stage sets up one job with its sidecars, readers and files; the
ground is where all of them run; the judge reads the history; the report is what people see.
"""
