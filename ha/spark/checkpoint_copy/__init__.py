"""Checkpoint directories as a whole: into a job, and out of it."""
