"""The command of a sidecar: started before a grant or after it, granted, asked to end, and killed in time."""

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from ha import grant as granting
from ha.belief import BeliefWriter
from ha.memory import memory_of
from ha.node import Node
from ha.spark_conf import spark_environment
from ha.supervised import Supervised
from leader.names import LeaderDirectory
from store.clock import now

NEVER = float("inf")

_log = logging.getLogger("ha")


class CommandState(Enum):
    """What a sidecar's command is doing."""

    COLD = "cold"
    """It is not there: nothing was granted, and nothing warms up."""
    WARMING = "warming"
    """It was started, and does not wait for its grant yet."""
    WARM = "warm"
    """It waits for its grant."""
    RUNNING = "running"
    """It was granted the job."""
    RESTARTING = "restarting"
    """It has failed, and is about to be started again within this leadership."""


class Command:
    """One command of one job: at most one of it runs at a time."""

    def __init__(
        self, node: Node, job: str, arguments: Sequence[str], ended: Callable[[], None], *, spark: bool = False
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            node: the process's stores and settings.
            job: the job's name.
            arguments: program and arguments.
            ended: called on a thread of its own when the command, and all that it has started here, is gone.
            spark: tell it where its checkpoints lie by Spark's own configuration.
        """
        self._node = node
        self._job = job
        self._arguments = list(arguments)
        self._ended = ended
        self._spark = spark
        self._directory = tempfile.TemporaryDirectory(prefix="ha-", ignore_cleanup_errors=True)
        self.belief = BeliefWriter(Path(self._directory.name, "belief"))
        self._child: Supervised | None = None
        self._code = 0
        self._epoch = 0
        """That it was granted; 0 if none yet."""
        self._grant: Path | None = None
        """Where it looks for its grant; None if it was started with one."""
        self._runs = 0
        self._kill_at = NEVER
        self._restarting = False
        self._since = now()

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._child is not None

    @property
    def kill_at(self) -> float:
        """By the clock, when :meth:`kill_late` has something to do; infinite if it has not been asked to end."""
        return self._kill_at

    def start(self, leader: LeaderDirectory | None) -> None:
        """Start it, with a grant or without one."""
        self._runs += 1
        self._grant = None if leader else Path(self._directory.name, f"grant-{self._runs}")
        self._epoch, self._restarting, self._since = 0, False, now()
        settings = self._node.settings
        # What is empty here hides what another sidecar has told this one, if it is a command itself.
        environment = {
            "HA_JOB": self._job,
            "HA_EPOCH": str(leader.epoch) if leader else "",
            "HA_SESSION_ID": leader.session_id if leader else "",
            "HA_LEADER_DIRECTORY": f"{settings.files.rstrip('/')}/{self._job}/{leader.name}" if leader else "",
            "HA_GRANT": str(self._grant or ""),
            "HA_BELIEF": str(self.belief.path),
            "HA_FILES": settings.files,
            "HA_ZOOKEEPER": settings.zookeeper,
            "HA_SNAPSHOTS": settings.snapshots,
            "HA_SPARK_JVM": "",
        }
        if self._spark:
            overlay = Path(self._directory.name, f"spark-{self._runs}")
            environment |= spark_environment(overlay, {**os.environ, **environment})
        if leader is not None:
            self._runs_in(leader)
        listener = self._node.listener
        held = [listener.fileno()] if listener is not None else []
        child = Supervised(self._arguments, environment, self.belief.path, held, self._grant)
        self._child, self._kill_at = child, NEVER
        threading.Thread(target=self._wait, args=(child,), name="ha-wait", daemon=True).start()
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def grant(self, leader: LeaderDirectory) -> None:
        """Let the command that waits for it go on.

        Raises:
            OSError: it cannot be told; it waits still.
        """
        assert self._grant is not None, "a command that was started with a grant gets no other"
        granting.grant(self._grant, leader)
        self._runs_in(leader)
        _log.info("%s: the command, which is warm, is granted epoch %d.", self._job, leader.epoch)

    def terminate(self, latest: float) -> None:
        """Ask it to end; at ``latest``, or when it was already to be killed sooner, it is late."""
        if self._child is not None:
            self._child.terminate()
            self._kill_at = min(self._kill_at, latest)

    def kill_late(self) -> None:
        """Kill it if it was asked to end and has not done so in time."""
        if self._child is not None and now() >= self._kill_at:
            _log.warning("%s: the command did not end in time and is killed.", self._job)
            self._child.kill()
            self._kill_at = NEVER

    def end(self) -> tuple[int, bool]:
        """Take leave of it; returns its exit code, and whether that says that the job has finished.

        A program that ends well before it has taken what was granted to it has not done the job's work.
        """
        self._child, self._kill_at, self._since = None, NEVER, now()
        return self._code, self._code == 0 and (self._grant is None or granting.taken(self._grant))

    def restarting(self) -> None:
        """It is about to be started again within the leadership."""
        self._restarting = True

    def given_up(self) -> None:
        """The leadership is over."""
        self._restarting, self._since = False, now()

    def close(self) -> None:
        """Kill it if it runs, and forget what was shared with it."""
        if self._child is not None:
            self._child.kill()
        self.belief.close()
        self._directory.cleanup()

    def shown(self) -> dict[str, Any]:
        """Return what can be seen of it: its state and for how many seconds, and what all its processes take."""
        child, grant, since = self._child, self._grant, self._since
        if child is None:
            state = CommandState.RESTARTING if self._restarting else CommandState.COLD
        elif self._epoch or grant is None:
            state = CommandState.RUNNING
        elif (awaited := granting.awaited_since(grant)) is not None:
            state, since = CommandState.WARM, awaited
        else:
            state = CommandState.WARMING
        processes, memory = memory_of(child.pid) if child is not None else (0, 0)
        return {
            "state": state.value,
            "seconds": round(max(0.0, now() - since), 1),
            "starts": self._runs,
            "processes": processes,
            "memory_bytes": memory,
        }

    def _runs_in(self, leader: LeaderDirectory) -> None:
        self._epoch, self._since = leader.epoch, now()
        self._node.stores.history.ran(self._job, leader.epoch, running=True)

    def _wait(self, child: Supervised) -> None:
        self._code = child.wait()
        if self._epoch:
            self._node.stores.history.ran(self._job, self._epoch, running=False)
        self._ended()
