"""Layout of the stores: the names of directories and znodes, and their meaning. Pure: no I/O, no threads, no clock."""
