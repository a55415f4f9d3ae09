"""Succession: what a sidecar takes over from one that was killed on this host, and what it leaves if it is killed.

    guard of a dead sidecar's command <--connects-- new sidecar: the same command? --no--> the command is killed
                                                         | yes
                                 lease renamed: the leadership continues, and so does the command

The protocol's part is :mod:`leader.election.adoption`. Nothing here decides who leads.
"""

import logging
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ha.config.stores import Stores
from ha.daemon.liveness_socket import LivenessSocket, new_liveness_socket
from ha.hosts.working_directory import working_directory
from ha.sidecar.command.guarded_command import Door
from ha.sidecar.command.newest_program import StoredProgram
from ha.sidecar.command.orphan import Orphan, meet
from ha.sidecar.command.slot import Left, RunOrder, Slot, place_of, take
from leader.job.programs import Program
from leader.layout.names import check_job

_log = logging.getLogger("ha")


class Succession:
    """One sidecar's slot, and the command that waits there to be taken up."""

    def __init__(
        self, job: str, command: Sequence[str], *, spark: bool = False, engine: bool = False, savepoint: str = ""
    ) -> None:
        """Look at no store yet; for the arguments see :class:`ha.sidecar.command.slot.RunOrder`."""
        # InvalidSettings: there is no working directory, in which the command would be started.
        self._job, self._command, self._spark, self._savepoint = check_job(job), list(command), spark, savepoint
        self._engine = engine
        self._place = str(working_directory())  # it may be gone by the time it is written down
        self._within = 0.0
        self._slot: Slot | None = None
        self.orphan: Orphan | None = None  # the command that is to be taken up; None if there is none

    def liveness_socket(self, stores: Stores) -> LivenessSocket | None:
        """Open this process's liveness socket: that of a dead sidecar, if its command is to be taken up."""
        # If another command is to run here, that one is killed, and this sidecar contends like any other. If no slot
        # can be had, the command of this sidecar ends with it, as without the setting. LeaderError: the stored program
        # cannot be read. StoreError: the store does not say which program is the newest.
        zookeeper = stores.zookeeper
        self._within = stores.settings.command.adopt_within
        if self._within:
            try:
                self._meet(*take(place_of(stores.files.uri, zookeeper.address if zookeeper else None), self._job))
            except OSError as error:
                self._warn(error)
        orphan = self.orphan
        if orphan is not None and self.order(self._program(stores)) != orphan.left.run:
            _log.warning("%s: the command whose sidecar is gone is not the one to run: it is killed.", self._job)
            orphan.end()
            self.orphan = orphan = None
        if orphan is None or orphan.left.contact is None:
            return new_liveness_socket(stores)
        contact = orphan.left.contact
        return LivenessSocket(socket.socket(fileno=orphan.listener), contact.host, contact.port, contact.process)

    def _meet(self, slot: Slot, guard: socket.socket | None) -> None:
        self._slot, left = slot, slot.left()
        if guard is not None:
            _log.info("%s: a command runs here whose sidecar is gone.", self._job)
            self.orphan = meet(left, guard)
        if self.orphan is None and left is not None:
            shutil.rmtree(left.directory, ignore_errors=True)  # nobody else will
            slot.forget()

    @contextmanager
    def door(self) -> Iterator[Door | None]:
        """Make the door of the guard that is started in the block."""
        if self._slot is None:
            yield None
            return
        try:
            made = self._slot.open_door()
        except OSError as error:
            self._warn(error)
            yield None
            return
        with made:
            yield Door(made.fileno(), self._within)

    def leave(self, left: Left) -> None:
        """Write down what a successor needs."""
        if self._slot is None:
            return
        try:
            self._slot.leave(left)
        except OSError as error:
            self._slot.forget()  # or a successor would read what is not true any more
            self._warn(error)

    def close(self) -> None:
        """Give the slot back; nothing runs any more."""
        if self._slot is not None:
            self._slot.close()

    def order(self, program: Program) -> RunOrder:
        """Return the order that this sidecar was given, for that program."""
        return RunOrder(program, self._spark, self._place, self._savepoint, self._engine)

    def _program(self, stores: Stores) -> Program:
        return Program(self._command) if self._command else StoredProgram(stores, self._job).newest()

    def _warn(self, error: OSError) -> None:
        _log.warning("%s: no other sidecar can take its command up: %s.", self._job, error.strerror or error)
