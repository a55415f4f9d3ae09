"""Verbs: what operators ask for, what each takes, needs and excludes, and how it is undone."""
