"""Placement: assigns each job to a root of a group, and finds it there."""
