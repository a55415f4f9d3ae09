"""RunEnvironment: what a run of a sidecar's command finds: variables, Spark's configuration, its program's files."""

import os
from collections.abc import Sequence
from pathlib import Path

from ha.daemon.process import ContendingProcess
from ha.hook import run_hook
from ha.program import end_file
from ha.sidecar.command.class_data import ClassData
from ha.sidecar.command.newest_program import StoredProgram
from ha.sidecar.command.run_directory import RunFiles
from ha.sidecar.command.spark_overlay import may_hide_its_end, may_use_spark, spark_environment
from leader.job.programs import Program
from leader.layout.names import SPARK, LeaderDirectory


class RunEnvironment:
    """The environment of one job's command."""

    def __init__(
        self,
        process: ContendingProcess,  # its stores and settings are used
        job: str,
        *,
        stored: StoredProgram | None = None,  # where the files of the program come from; None if it was never stored
        spark: bool = False,  # use Spark's own configuration to tell the command where its checkpoints are
        engine: bool = False,  # the command is a program whose JVM an engine keeps
        # An archive of Spark's classes, which the command uses if it is there; None not to.
        class_data: ClassData | None = None,
    ) -> None:
        self._process, self._job = process, job
        self._stored, self._spark, self._engine, self._class_data = stored, spark, engine, class_data

    def prepare(
        self, program: Program, files: RunFiles, leader: LeaderDirectory | None, excluded: Sequence[str]
    ) -> tuple[dict[str, str], Path | None]:
        """Prepare a start; returns the variables, and the working directory, which is None for one never stored."""
        # The leader is None for a warm standby. Unreadable: a file of the program is damaged.
        found = {**program.environment, **self.variables(files, leader), "HA_EXCLUDED_HOSTS": ",".join(excluded)}
        # The command writes into a pipe: without this, what a program has printed before it was killed is lost.
        found.setdefault("PYTHONUNBUFFERED", os.environ.get("PYTHONUNBUFFERED", "1"))
        place = None
        if self._stored is not None:
            self._stored.unpack(program, place := files.program)
        options = self._class_data.options(os.environ) if self._class_data is not None else {}
        if self._spark or options or excluded or may_use_spark(program.command):
            jars = self._class_data.jars if self._class_data is not None and options else None
            known = {**os.environ, **found}
            plan = {"checkpoints": f"{found['HA_LEADER_DIRECTORY']}/{SPARK}", "file": str(files.unguarded)}
            end = end_file.of(files.report)
            guard = {run_hook.__file__: {**plan, "end": str(end), "report": str(files.report)}} if leader else {}
            hidden = end if leader and not self._engine and may_hide_its_end(program.command) else None
            found |= spark_environment(
                files.spark, known, jars, spark=self._spark, end=hidden, excluded=excluded, hooks=guard
            )
            found |= options
        return found, place

    def variables(self, files: RunFiles, leader: LeaderDirectory | None) -> dict[str, str]:
        """Return the variables that tell a run of its sidecar and its leadership; None for a warm standby."""
        settings = self._process.settings
        # An empty value hides the variable of another sidecar, if this sidecar is that one's command.
        return {
            "HA_JOB": self._job,
            "HA_EPOCH": str(leader.epoch) if leader else "",
            "HA_SESSION_ID": leader.session_id if leader else "",
            "HA_LEADER_DIRECTORY": self._process.stores.directory_uri(self._job, leader) if leader else "",
            "HA_GRANT": "" if leader else str(files.grant),
            "HA_BELIEF": str(files.belief),
            "HA_HEARTBEAT": str(files.heartbeat) if settings.command.heartbeat_timeout else "",
            "HA_HEARTBEAT_TIMEOUT": f"{settings.command.heartbeat_timeout:g}",
            "HA_QUERIES": str(files.report),
            "HA_SETTLE": str(files.settle),
            "HA_RESTART": str(files.restart),
            "HA_FILES": settings.stores.files,
            "HA_ZOOKEEPER": settings.stores.zookeeper,
            "HA_SNAPSHOTS": settings.leadership.snapshots,
            "HA_SPARK_JVM": "",
            "HA_ENGINE": "",
        }
