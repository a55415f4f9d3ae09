"""Benchmarks: the costs of this project, beside those of common alternatives.

Each module in the catalogue measures one thing. The figures do NOT say how fast a cluster is. All servers and clients
share one machine and its loopback, so only a comparison within one run means much: the ratios.
"""
