"""What this costs, beside what people use today: each module named in the catalogue measures one thing.

What the figures do NOT say: how fast a cluster is. All servers and clients share one machine and its loopback, so only
what was measured beside something else, within one run, means much: the ratios.
"""
