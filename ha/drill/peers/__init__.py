"""What people guard a job with today, for comparison: kazoo's ``Election`` and Curator's ``LeaderLatch``.

Each is used as its own documentation says, by somebody careful; its module says what was chosen, and why. All that is
not the election is the same for both, and done as well as this project knows how: a command that dies with its guard,
in a process group that ends as a whole, and a history in the same format, so that the same judge looks at all three.

    kazoo_election ──┐                                              append_words   the driver that such people have
    curator_latch  ──┴──> guarded ──> command ──> leash ──> driver  results        what it has written
    reading                                                         election       where all of this is in ZooKeeper
"""
