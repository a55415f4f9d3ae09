"""Placement: which root of a group holds a job, and how everybody finds it."""
