"""Late calls: those that were given up and may still change something."""

from leader.election.events import Rename
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from tests.system.exhaustive.model import State, Store


def executable(state: State) -> tuple[Rename, ...]:
    """Return the calls whose source is written or may appear later: every rename raises an epoch or a sequence."""
    return tuple(late for late in dict.fromkeys(state.abandoned) if _may_be_there(late.source, state.durable))


def _may_be_there(path: str, written: Store) -> bool:
    home, _, entry = path.partition("/")
    directory, lease = LeaderDirectory.parse(home), Lease.parse(entry.rpartition("/")[2])
    assert directory is not None
    if directory != written.directory and directory.epoch <= written.directory.epoch:
        return False
    return lease is None or lease == written.lease or lease.sequence > written.lease.sequence
