"""RunEnvironment: what a run of a sidecar's command finds: variables, Spark's configuration, its program's files."""

import os
from collections.abc import Sequence
from pathlib import Path

from ha.daemon.process import ContendingProcess
from ha.sidecar.class_data import ClassData
from ha.sidecar.operator_requests import RESCALE_EXECUTORS, RESTART_QUERY
from ha.sidecar.run_files import RunFiles
from ha.sidecar.spark_overlay import may_use_spark, spark_environment
from ha.sidecar.stored_program import StoredProgram
from leader.job.programs import Program
from leader.layout.names import LeaderDirectory


class RunEnvironment:
    """The environment of one job's command."""

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        *,
        stored: StoredProgram | None = None,
        spark: bool = False,
        class_data: ClassData | None = None,
    ) -> None:
        """Prepare nothing yet.

        Args:
            process: its stores and settings are used.
            job: the job's name.
            stored: where the files of the program come from; None if it was never stored.
            spark: use Spark's own configuration to tell the command where its checkpoints are.
            class_data: an archive of Spark's classes, which the command uses if it is there; None not to.
        """
        self._process, self._job = process, job
        self._stored, self._spark, self._class_data = stored, spark, class_data

    def prepare(
        self, program: Program, files: RunFiles, leader: LeaderDirectory | None, excluded: Sequence[str]
    ) -> tuple[dict[str, str], Path | None]:
        """Prepare a start; returns the variables, and the working directory, which is None for one never stored.

        Args:
            program: that is started.
            files: of the run.
            leader: the leadership; None for a warm standby, which waits for its grant.
            excluded: hosts that its executors are to keep off.

        Raises:
            OSError: a file cannot be written.
            Unreadable: a file of the program is damaged.
        """
        found = {**program.environment, **self.variables(files, leader), "HA_EXCLUDED_HOSTS": ",".join(excluded)}
        place = None
        if self._stored is not None:
            self._stored.unpack(program, place := files.program)
        options = self._class_data.options(os.environ) if self._class_data is not None else {}
        if self._spark or options or excluded or may_use_spark(program.command):
            jars = self._class_data.jars if self._class_data is not None and options else None
            known = {**os.environ, **found}
            found |= spark_environment(files.spark, known, jars, spark=self._spark, excluded=excluded)
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
            "HA_HEARTBEAT": str(files.heartbeat) if settings.heartbeat_timeout else "",
            "HA_HEARTBEAT_TIMEOUT": f"{settings.heartbeat_timeout:g}",
            "HA_QUERIES": str(files.report),
            "HA_SETTLE": str(files.settle),
            "HA_RESTART": str(files.asking_for(RESTART_QUERY)),
            "HA_EXECUTORS": str(files.asking_for(RESCALE_EXECUTORS)),
            "HA_FILES": settings.files,
            "HA_ZOOKEEPER": settings.zookeeper,
            "HA_SNAPSHOTS": settings.snapshots,
            "HA_SPARK_JVM": "",
            "HA_ENGINE": "",
        }
