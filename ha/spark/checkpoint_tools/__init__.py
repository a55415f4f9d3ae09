"""Tools for whole checkpoints: copied into a job and out of it, put back, and given other partitions."""
