"""Outputs of queries: rows that Spark writes as files, and the fenced publication of a batch."""
