"""Lookups in Spark's tasks: which job a task belongs to, and the clients of a worker."""
