"""Pre-flight: checks that a changed program can restart from a job's checkpoints, before the old one ends."""
