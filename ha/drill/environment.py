"""Environment of drills: real ZooKeeper and HDFS servers, and the members of a job beside them.

Servers have the same names everywhere: ``zookeeper-1`` to ``-3``, ``journalnode-1`` to ``-3``, ``namenode-1`` and
``-2``, ``datanode-1`` and on. An environment names its ``abilities``; drills that need others are skipped.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from ha.hosts.host_error import HostError
from store.clock import now

Strike = Literal["kill", "freeze", "expose"]

Side = Literal["both", "out", "in"]  # direction of the lost packets, seen from the member or server that is cut off


class Ability(StrEnum):
    """Abilities that only some environments have."""

    NETWORK = "cut and slow down networks"
    HOST = "lose a whole host"
    CLOCK = "shift a host's clock"
    LIMITS = "fill disks and run out of memory"
    RETURN = "start a sidecar beside a driver that a killed one has left"
    CLUSTER = "lose a whole cluster while there is another one"


class DrillError(HostError):
    """The drill cannot be carried out; the message says why, and what to do."""


class ProgramFailed(DrillError):
    """A program that was called has ended with an error, after it had printed ``output``."""

    def __init__(self, command: Sequence[str], code: int, output: str, said: str) -> None:
        super().__init__(f"{' '.join(command[:3])} failed with {code}: {said.strip()[-500:]}")
        self.output = output


class Member(Protocol):
    """A process that takes part: a contender with everything below it, a reader, or the feeder."""

    name: str

    @property
    def running(self) -> bool:
        """Whether its main process has not ended."""

    @property
    def exit_code(self) -> int | None:
        """Exit code of its main process; None if the process has not ended, or was lost."""

    def ended_at(self) -> float:
        """Return when it has ended, at the latest, in seconds of the boot clock: it has just been killed."""
        return now()

    def log(self) -> str:
        """Its output until now."""

    def kill(self) -> None:
        """SIGKILL its main process, and nothing else."""

    def strike(self, verb: Strike, kind: str) -> int:
        """Do that to the processes of a kind below it, see :mod:`ha.drill.kill`; return how many there were."""

    def freeze(self) -> None:
        """Stop the clocks of all its processes."""

    def thaw(self) -> None:
        """Resume all of its processes."""

    def end(self) -> None:
        """Leave nothing of it behind; a second call does no harm."""

    # --- what only some environments can do

    def lose(self) -> None:
        """Lose its host: nothing that is sent there is answered, not even with a refusal."""
        raise DrillError("This environment cannot lose a host.")

    def fill_disk(self) -> None:
        """Leave no byte free where it writes."""
        raise DrillError("This environment cannot fill a disk.")

    def clear_disk(self) -> None:
        """Undo ``fill_disk``."""
        raise DrillError("This environment cannot clear a disk.")

    def exhaust_memory(self) -> None:
        """Take all memory until the kernel has ended a process."""
        raise DrillError("This environment cannot exhaust a member's memory.")


class Cluster(Protocol):
    """The servers of an environment, by their names; each call ends within some minutes, or raises ``HostError``."""

    def names(self, kind: str) -> list[str]:
        """Names of the servers of a kind, such as ``zookeeper``."""

    def stop(self, name: str) -> None:
        """Stop a server in an orderly way."""

    def kill(self, name: str) -> None:
        """SIGKILL a server."""

    def start(self, name: str) -> None:
        """Start a server that is down, on its old data; return before it serves."""

    def pause(self, name: str) -> None:
        """Stop a server's clock."""

    def resume(self, name: str) -> None:
        """Resume a paused server."""

    def wait_ready(self, name: str) -> None:
        """Wait until a server serves."""

    def zookeeper_leader(self) -> str:
        """The leader of the ensemble."""

    def wipe_zookeeper(self) -> None:
        """Stop all ZooKeeper servers, delete what they hold, start them again, and wait until they serve."""

    def active_namenode(self) -> str | None:
        """The active NameNode; None if there is none."""

    def failover(self, to: str) -> None:
        """Make a NameNode the active one, whatever the other does; return when it accepts writes."""

    def safe_mode(self, on: bool) -> None:
        """Make the active NameNode refuse all writes, or accept them again."""

    def edits(self) -> list[str]:
        """HDFS's edit log, one XML document for each segment."""


class Environment(Protocol):
    """Servers, and a place for members."""

    name: str
    cluster: Cluster
    abilities: frozenset[Ability] = frozenset()
    closed: bool = False  # whether the stores ask everybody who they are, so that a stranger can do nothing

    elsewhere: str = ""  # how to get the abilities that it lacks, as the end of a sentence

    # --- as a whole

    def up(self, say: Callable[[str], None]) -> None:
        """Start or repair every server that does not serve, undo every fault, and wait until all is well."""

    def down(self) -> None:
        """Stop what ``up`` has started."""

    def variables(self) -> dict[str, str]:
        """The variables that make a member use these servers."""

    def second(self, folder: Path) -> "Environment":
        """Return another cluster for the drill in this folder, apart from this one in everything; it is down."""
        raise DrillError(f"This environment cannot have a second cluster in {folder}.")

    @property
    def scratch(self) -> str:
        """URI of a directory for the files of jobs."""

    def member_path(self, path: Path) -> str:
        """Return a path below the drill's folder as members see it."""

    # --- members

    def start_member(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path, beside: str
    ) -> Member:
        """Start a process with the variables of this environment and more; its name is unique among those that run.

        In the command, ``python`` stands for the interpreter of the environment. The member can write into the drill's
        ``folder``. It is on the host of the member ``beside``, else on one of its own if the environment has several.
        """

    def call(self, command: Sequence[str], folder: Path, timeout: float) -> str:
        """Run a program to its end and return its output.

        Raises:
            ProgramFailed: it ended with another code than 0.
            DrillError: it did not end in time.
        """

    def strangers(self) -> Mapping[str, Mapping[str, str]]:
        """Return the strangers that can reach ZooKeeper: names, and the variables that make a member one of them."""
        return {"stranger": {}}

    def driver(self, program: str) -> str:
        """Path of the program of that name, among those that the jobs of drills run, as members see it."""

    # --- networks, clocks and limits: see ``abilities``

    def cut(self, who: str, others: Sequence[str], side: Side = "both") -> None:
        """Lose every packet between a member or server and others."""
        raise DrillError(f"This environment cannot cut {who} off from {', '.join(others)} ({side}).")

    def degrade(self, who: str, delay: float, loss: float) -> None:
        """Delay what a member or server sends by ``delay`` seconds and lose a share of it."""
        raise DrillError(f"This environment cannot slow {who} down ({delay:g} s, {loss:.0%}).")

    def mend(self, who: str) -> None:
        """Undo ``cut`` and ``degrade``."""
        raise DrillError(f"There is nothing to mend at {who}.")

    def shift_clock(self, who: str, seconds: float) -> None:
        """Set a member's or server's wall clock off by that much."""
        raise DrillError(f"This environment cannot shift the clock of {who} by {seconds:g} s.")

    def hosts(self) -> list[str]:
        """Names of all servers and members that are running."""
        return []
