"""Balancing: which jobs should move between the roots of a group, and why."""
