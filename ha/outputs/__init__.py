"""Outputs: what each published batch consists of, how it gets to its place, and whether it is there."""
