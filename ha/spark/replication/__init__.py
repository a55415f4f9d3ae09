"""Replication of a job's checkpoints to another file system, and the promotion of a replica there."""
