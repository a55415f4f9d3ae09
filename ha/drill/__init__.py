"""Failover drills: a real streaming job on real stores, one fault at a time, and a verdict on the outcome.

    catalogue ──> drill ──> fixture ──> environment (sandbox | containers)
                     └──────> judge ──> outcome ──> report

A drill says what breaks and what may come of it. The fixture sets up one job with its contenders, readers and input;
the environment is where all of them run. The judge reads the history, and the report shows what it found.
``DrillError`` ends a drill that cannot be carried out, and none of the next ones.
"""
