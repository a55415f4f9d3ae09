"""The state machine of one contender in one job. Pure: no I/O, no threads, no clock."""
