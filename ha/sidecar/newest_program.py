"""NewestProgram: which program a sidecar's command runs at its next start, and whether this host can run it."""

import logging
import os
from collections.abc import Sequence

from ha.sidecar.engine import parts
from ha.sidecar.spark_overlay import DEFAULTS, check_command, users_configuration
from ha.sidecar.spark_submit import check_place
from ha.sidecar.stored_program import StoredProgram
from leader.job.programs import Program
from store.errors import StoreError

_log = logging.getLogger("ha")


class NewestProgram:
    """The command that was given to the sidecar, or the newest one that is stored."""

    def __init__(
        self,
        stored: StoredProgram | None,
        command: Sequence[str],
        *,
        spark: bool = False,
        engine: bool = False,
        warm: bool = False,
    ) -> None:
        """Look at nothing yet.

        Args:
            stored: None if the command was given.
            command: program and arguments, if they were given.
            spark: whether Spark's own configuration tells the command where its checkpoints are.
            engine: whether the program runs under an engine.
            warm: whether the command starts before the grant.
        """
        self._stored = stored
        self._given = Program(list(command))
        self._spark, self._engine, self._warm = spark, engine, warm

    def first(self) -> Program:
        """Return the program to begin with.

        Raises:
            LeaderError: it is damaged, or this host cannot run it; or none is stored.
            StoreError: the store does not answer.
        """
        return self._checked(self._given if self._stored is None else self._stored.newest())

    def newest(self, present: Program) -> Program:
        """Return the program for the next start: the present one as well while the store does not answer.

        Raises:
            LeaderError: it is damaged, or this host cannot run it.
        """
        if self._stored is None:
            return present
        try:
            newest = self._stored.newest(present)
        except StoreError as error:
            _log.warning("A newer program than version %d is not looked for: %s", present.version, error)
            return present
        return self._checked(newest) if newest != present else present

    def _checked(self, program: Program) -> Program:
        environment = {**os.environ, **program.environment}
        users = users_configuration(environment)
        check_place(program.command, environment, users / DEFAULTS if users is not None else None)
        if self._engine:
            parts(program.command, environment)
        if self._spark:
            check_command(program.command, warm=self._warm)
        return program
