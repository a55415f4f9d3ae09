"""Adoption: a process takes up the leadership of one that has died on its host, while its command runs on. No I/O.

The new process knows epoch and session id, and that the former one is dead: it holds the lock that the other one held
for life. Calls of a dead process may still be executed. So the new one reads the store and renames the lease once: its
belief begins when that rename is acknowledged. Until then the belief of the dead process lasts; the guard of the
command knows its end.

    look -> the lease is that leadership's -> rename it, with a leap in the sequence -> acknowledged: granted, "adopted"
    look -> anything else                  -> revoked: the command must end

Nothing that the dead process has sent can undo the rename: each of its renames begins at an entry that is gone by then,
and all names of the new process lie beyond those that the dead one can have used.
"""

from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory

LEAP = 10_000
"""Sequences that are left out: more than the dead process can have tried after the last one that it knew to be there.

It tried one each ``timing.retry`` while it held the lease, at most the long time to live: 240 with the default
durations, so this is enough for a long time to live of up to 400 short ones. A name that it tried may have been shown
by a NameNode that forgot it, and a standby counts from when it first saw a name.
"""

LAST_SEQUENCE = 500_000_000  # half of what is believed; no adoption beyond it: 50,000 adoptions, any number of renewals


def refusal(leader: LeaderDirectory, directory: LeaderDirectory | None, lease: Lease) -> str | None:
    """Return why this leadership cannot be taken up, given directory and lease as listed; None if it can."""
    if directory != leader:
        return f"It cannot be taken up: epoch {directory.epoch if directory else 0} has begun."
    if lease.owner != leader.session_id:
        return f"It cannot be taken up: its lease was seized by {lease.contender}."
    if lease.mode is Mode.RELEASED:
        return "It cannot be taken up: its lease was given back."
    if lease.sequence > LAST_SEQUENCE:
        return "It cannot be taken up: its lease has been renamed too often."
    return None
