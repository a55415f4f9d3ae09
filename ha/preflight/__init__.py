"""Pre-flight: whether a changed program will restart from the checkpoints of a job, told before the old one goes."""
