"""Where drills run: real ZooKeeper and HDFS servers, and members of a job beside them.

Servers have the same names everywhere: ``zookeeper-1`` to ``-3``, ``journalnode-1`` to ``-3``, ``namenode-1`` and
``-2``, ``datanode-1`` and on. What a ground cannot do it says in ``abilities``, and drills that need it are skipped.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal

Side = Literal["both", "out", "in"]
"""Which packets are lost, seen from the member or server that is cut off."""


class Ability(StrEnum):
    """What only some grounds can do."""

    NETWORK = "cut and slow down networks"
    HOST = "lose a whole host"
    CLOCK = "shift a host's clock"
    LIMITS = "fill disks and run out of memory"


class DrillError(Exception):
    """The drill cannot be carried out; the message says why, and what to do."""


class Member(ABC):
    """A process that takes part: a sidecar with what runs below it, a reader, or whoever feeds the job."""

    name: str

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether its main process has not ended."""

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """What its main process ended with; None if it has not, or was lost."""

    @abstractmethod
    def log(self) -> str:
        """What it has printed until now."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL its main process, and nothing else."""

    @abstractmethod
    def strike(self, what: str, verb: str = "kill") -> int:
        """Do something to a process below it; see :mod:`ha.drill.programs.strike`.

        Returns:
            The number of processes that were struck.
        """

    @abstractmethod
    def freeze(self) -> None:
        """Stop the clocks of all its processes."""

    @abstractmethod
    def thaw(self) -> None:
        """Let all of them go on."""

    @abstractmethod
    def end(self) -> None:
        """Leave nothing of it behind; more than once does no harm."""

    # --- what only some grounds can do

    def lose(self) -> None:
        """Its host is gone: nothing that is sent to it is answered, not even with a refusal."""
        raise DrillError("This ground cannot lose a host.")

    def fill_disk(self) -> None:
        """Leave no byte free where it writes."""
        raise DrillError("This ground cannot fill a disk.")

    def clear_disk(self) -> None:
        """Undo ``fill_disk``."""
        raise DrillError("This ground cannot clear a disk.")

    def exhaust_memory(self) -> None:
        """Take all the memory there is, until the kernel has ended a process."""
        raise DrillError("This ground cannot take a member's memory away.")


class Ground(ABC):
    """Servers, and a place for members."""

    name: str
    abilities: frozenset[Ability] = frozenset()
    elsewhere: str = ""
    """What to do to have the abilities that it lacks, as the end of a sentence."""

    # --- as a whole

    @abstractmethod
    def up(self, say: Callable[[str], None]) -> None:
        """Start or mend whatever does not serve, undo every fault, and wait until all is well."""

    @abstractmethod
    def down(self) -> None:
        """Stop what ``up`` has started."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """The variables that make a member use these servers."""

    @property
    @abstractmethod
    def scratch(self) -> str:
        """URI of a directory for the files of jobs."""

    @abstractmethod
    def inside(self, path: Path) -> str:
        """The name that members have for a path below the folder of the drill."""

    # --- members

    @abstractmethod
    def start_member(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, beside: str = ""
    ) -> Member:
        """Start a process with the environment of this ground and more.

        Args:
            name: unique among those that are running.
            command: ``python`` as its first word stands for the interpreter of the ground.
            environment: added to the ground's own.
            folder: of the drill; shared with the member, and where its log goes.
            beside: a member on whose host it is; by default on one of its own, where there are several.
        """

    @abstractmethod
    def call(self, command: Sequence[str], folder: Path, timeout: float) -> str:
        """Run a program to its end and return what it printed.

        Raises:
            DrillError: it failed, or took too long.
        """

    @abstractmethod
    def driver(self) -> str:
        """Path of the word count that the jobs of drills run, as members see it."""

    # --- servers

    @abstractmethod
    def servers(self, kind: str) -> list[str]:
        """Names of the servers of a kind, such as ``zookeeper``."""

    @abstractmethod
    def stop(self, server: str) -> None:
        """End a server politely."""

    @abstractmethod
    def kill(self, server: str) -> None:
        """SIGKILL a server."""

    @abstractmethod
    def start(self, server: str) -> None:
        """Start a server that is down, on its old data; does not wait until it serves."""

    @abstractmethod
    def pause(self, server: str) -> None:
        """Stop a server's clock."""

    @abstractmethod
    def resume(self, server: str) -> None:
        """Let a paused server go on."""

    @abstractmethod
    def wait_ready(self, server: str) -> None:
        """Wait until a server serves."""

    @abstractmethod
    def zookeeper_leader(self) -> str:
        """The server that leads the ensemble."""

    @abstractmethod
    def wipe_zookeeper(self) -> None:
        """Stop all ZooKeeper servers, delete what they hold, start them again, and wait until they serve."""

    @abstractmethod
    def active_namenode(self) -> str:
        """The active NameNode; empty if there is none."""

    @abstractmethod
    def failover(self, to: str) -> None:
        """Make a NameNode the active one, whatever the other one does; return when it takes writes."""

    @abstractmethod
    def safe_mode(self, on: bool) -> None:
        """Make the active NameNode refuse all writes, or accept them again."""

    @abstractmethod
    def edits(self) -> list[str]:
        """What HDFS has executed: its edit log, one XML document for each segment."""

    # --- networks, clocks and limits: see ``abilities``

    def cut(self, who: str, others: Sequence[str], side: Side = "both") -> None:
        """Lose every packet between a member or server and others."""
        raise DrillError(f"This ground cannot cut {who} off from {', '.join(others)} ({side}).")

    def degrade(self, who: str, delay: float, loss: float) -> None:
        """Delay what a member or server sends by ``delay`` seconds and lose a share of it."""
        raise DrillError(f"This ground cannot slow {who} down ({delay:g} s, {loss:.0%}).")

    def mend(self, who: str) -> None:
        """Undo ``cut`` and ``degrade``."""
        raise DrillError(f"There is nothing to mend at {who}.")

    def shift_clock(self, who: str, seconds: float) -> None:
        """Set a member's or server's wall clock off by that much."""
        raise DrillError(f"This ground cannot shift the clock of {who} by {seconds:g} s.")

    def everybody(self) -> list[str]:
        """Names of all servers and members that are running."""
        return []
