"""NewestProgram: which program a sidecar's command runs at its next start, and whether this host can run it.

What `ha job submit` has stored is fetched to this host, so that any sidecar can run the newest version. Files are kept
in the user's cache by their SHA-256, which is compared at each use. So a version that a host has run once needs no
DataNode again, and a damaged copy is never run.
"""

import logging
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ha.config.stores import Stores
from ha.hosts.cache import cache_directory, cached, sha256
from ha.hosts.host_error import HostError
from ha.sidecar.command.engine import parts
from ha.sidecar.command.spark_overlay import DEFAULTS, check_command, users_configuration
from ha.sidecar.command.spark_submit import check_place, default_files
from leader.errors import Fenced, InvalidSettings, Unreadable
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import LOOKS
from leader.job.programs import Program, ProgramFile, Programs
from leader.layout.running import Running
from store.errors import StoreError
from store.hadoop_errors import configuration

T = TypeVar("T")

_log = logging.getLogger("ha")


class StoredProgram:
    """The program of one job."""

    def __init__(self, stores: Stores, job: str) -> None:
        self._admin = JobAdmin(stores.files, None, stores.timing.call_timeout)
        self._job = job

    def newest(self, known: Program | None = None) -> Program:
        """Return the newest version, with all of its files on this host now; ``known``, unread, if it is that."""
        # InvalidSettings: none was ever stored, or its command is not on this host. Unreadable: it is damaged.
        program = self._with_directory(lambda programs: programs.newest(known))
        if program is not None and program == known:
            return program
        if program is None:
            raise InvalidSettings(
                f"Job {self._job!r} has no stored program: give a COMMAND, or store one with "
                f"`ha job submit {self._job} -- COMMAND`."
            )
        return self._here(program)

    def version(self, number: int) -> Program:
        """Return one version, all of whose files are on this host now; raises as :meth:`newest` does."""
        program = self._with_directory(lambda programs: programs.load(number))
        if program is None:
            raise InvalidSettings(
                f"Job {self._job!r} has no stored version {number}: see `ha job submit {self._job} --list`."
            )
        return self._here(program)

    def unpack(self, program: Program, folder: Path) -> None:
        """Copy a version's files into a new folder."""
        # OSError: it cannot be written. Unreadable: a file is neither in the cache nor in the store as it was.
        folder.mkdir()
        for file in program.files:
            copy = folder / file.name
            shutil.copyfile(self._fetched(program, file), copy)
            if file.executable:
                copy.chmod(0o755)

    def _fetched(self, program: Program, file: ProgramFile) -> Path:
        """Return the cached copy of a file, which is fetched if it is not there or is damaged."""
        path = cache_directory() / "programs" / file.sha256
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            if sha256(path) == file.sha256:
                return path
            path.unlink()

        def fetch(folder: Path) -> None:
            content = self._with_directory(lambda programs: programs.read(program, file))
            (folder / path.name).write_bytes(content)

        try:
            return cached(path, fetch)
        except HostError as error:
            raise Unreadable(f"{error}") from error

    def _here(self, program: Program) -> Program:
        """Fetch its files; refuse a command that this host cannot start: a program's own file is in its folder."""
        for file in program.files:
            self._fetched(program, file)
        name = program.command[0]
        own = any(os.path.normpath(name) == file.name for file in program.files) and os.sep in name
        if not own and shutil.which(name) is None:
            raise InvalidSettings(
                f"Version {program.version} of job {self._job!r} runs {name!r}, and there is no such command on this "
                "host: install it, or submit it as a file and call it by ./"
            )
        return program

    def _with_directory(self, read: Callable[[Programs], T]) -> T:
        """Read from the leader directory, wherever a claim has moved it."""
        for _ in range(LOOKS - 1):
            with suppress(Fenced):
                return read(Programs(self._admin.directory(self._job)))
        return read(Programs(self._admin.directory(self._job)))


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
