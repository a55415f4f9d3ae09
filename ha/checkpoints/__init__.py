"""Spark's checkpoints as sets of files: finds, checks and copies the files that a restart needs."""
