"""Lookups and calls in Spark's Python workers."""
