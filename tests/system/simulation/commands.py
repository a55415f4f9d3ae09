"""Kinds of commands for the file system, for faults that wait for a command of one kind."""

from collections.abc import Callable

from leader.election.events import CreateJob, FilesCommand, MakeDirectory, Rename
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory


def _leases(command: FilesCommand) -> tuple[Lease, Lease] | None:
    if not isinstance(command, Rename):
        return None
    old, new = (Lease.parse(path.rpartition("/")[2]) for path in (command.source, command.destination))
    return (old, new) if old and new else None


def creation(command: FilesCommand) -> bool:
    return isinstance(command, CreateJob)


def seizure(command: FilesCommand) -> bool:
    leases = _leases(command)
    return leases is not None and leases[0].owner != leases[1].owner


def claim(command: FilesCommand) -> bool:
    return isinstance(command, Rename) and LeaderDirectory.parse(command.source) is not None


def renewal(command: FilesCommand) -> bool:
    leases = _leases(command)
    return leases is not None and leases[0].owner == leases[1].owner and leases[0].mode is leases[1].mode


def own_lease(command: FilesCommand) -> bool:
    """Match any change of one holder's lease that keeps it; the first one of a sidecar that comes back takes it up."""
    leases = _leases(command)
    return leases is not None and leases[0].owner == leases[1].owner and leases[1].mode is not Mode.RELEASED


def switch(mode: Mode) -> Callable[[FilesCommand], bool]:
    """Match a change of one holder's lease to that mode."""

    def fits(command: FilesCommand) -> bool:
        leases = _leases(command)
        if leases is None or leases[0].owner != leases[1].owner:
            return False
        return leases[0].mode is not mode and leases[1].mode is mode

    return fits


def endpoint(command: FilesCommand) -> bool:
    path = command.destination if isinstance(command, Rename) else getattr(command, "path", "")
    return "/endpoint~" in path


def history(command: FilesCommand) -> bool:
    return isinstance(command, MakeDirectory) and "/history/" in command.path


def change(command: FilesCommand) -> bool:
    """Match any command but a list."""
    return isinstance(command, Rename | MakeDirectory)


KINDS: dict[str, Callable[[FilesCommand], bool]] = {
    "seizure": seizure,
    "claim": claim,
    "renewal": renewal,
    "switch to hdfs": switch(Mode.HDFS),
    "switch to zookeeper": switch(Mode.ZOOKEEPER),
    "own lease": own_lease,
    "release": switch(Mode.RELEASED),
    "endpoint": endpoint,
    "change": change,
    "any": lambda _: True,
}
