"""Stored checkpoints: where they are, and what Spark has written there."""
