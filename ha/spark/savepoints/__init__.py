"""Savepoints: all queries of a job at a consistent cut, copied and shown by one rename, and started from."""
