"""The sidecar's decisions, without I/O: events and the time go in, commands come out."""
