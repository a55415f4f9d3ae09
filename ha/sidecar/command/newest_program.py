"""NewestProgram: which program a sidecar's command runs at its next start, and whether this host can run it."""

import logging
import os
import socket
from collections.abc import Sequence

from ha.sidecar.command.engine import parts
from ha.sidecar.command.spark_overlay import DEFAULTS, check_command, users_configuration
from ha.sidecar.command.spark_submit import check_place, default_files
from ha.sidecar.command.stored_program import StoredProgram
from leader.job.programs import Program
from leader.layout.running import Running
from store.errors import StoreError
from store.hadoop_errors import configuration

_log = logging.getLogger("ha")


class NewestProgram:
    """The command that was given to the sidecar, or the newest one that is stored."""

    def __init__(
        self,
        stored: StoredProgram | None,  # none if the command was given
        command: Sequence[str],  # program and arguments, if they were given
        *,
        spark: bool = False,  # whether Spark's own configuration tells the command where its checkpoints are
        engine: bool = False,  # whether the program runs under an engine
        warm: bool = False,  # whether the command starts before the grant
    ) -> None:
        self._stored = stored
        self._given = Program(list(command))
        self._spark, self._engine, self._warm = spark, engine, warm

    def first(self) -> Program:
        """Return the program to begin with; LeaderError if there is none, it is damaged, or this host cannot run it."""
        return self._checked(self._given if self._stored is None else self._stored.newest())

    def newest(self, present: Program) -> Program:
        """Return the program for the next start: the present one as well while the store does not answer."""
        # LeaderError: it is damaged, or this host cannot run it.
        if self._stored is None:
            return present
        try:
            newest = self._stored.newest(present)
        except StoreError as error:
            _log.warning("A newer program than version %d is not looked for: %s", present.version, error)
            return present
        return self._checked(newest) if newest != present else present

    def running(self, contender: str) -> Running:
        """Describe what this sidecar would run, for those that contend for the same job."""
        command = [] if self._stored is not None else self._given.command
        users = users_configuration(os.environ)
        files = default_files(command, users / DEFAULTS if users is not None else None, configuration)
        host = socket.gethostname()
        return Running.of(command, files, (contender, host, host.partition(".")[0]))

    def _checked(self, program: Program) -> Program:
        environment = {**os.environ, **program.environment}
        users = users_configuration(environment)
        check_place(program.command, environment, users / DEFAULTS if users is not None else None)
        if self._engine:
            parts(program.command, environment)
        if self._spark:
            check_command(program.command, warm=self._warm)
        return program
