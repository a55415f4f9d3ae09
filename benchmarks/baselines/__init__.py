"""Baselines: what people use today to keep a job available, kazoo's ``Election`` and Curator's ``LeaderLatch``.

Each is used as its documentation says, by a careful user; its module quotes the documentation and explains the choices.
Everything that is not the election is shared by both, and done as well as this project can: the command dies with its
contender, its process group ends as a whole, and the history has the same format, so that one judge looks at all three.

    kazoo_election ──┐                                        append_words     the driver that such users have
    curator_latch  ──┴──> contender ──> command ──> leash     appended_words   counts what the driver has written
    reading                                                   election         the nodes of all this in ZooKeeper
    ..drills        makes the two available to drills as HA providers
"""
