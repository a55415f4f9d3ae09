"""Spark's checkpoints as sets of files: what a restart needs, whether it is there, and where it can be copied."""
