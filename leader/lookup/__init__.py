"""Readers: find the leader of a job and its newest checkpoints."""
