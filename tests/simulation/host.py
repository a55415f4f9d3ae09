"""One simulated process: a clock of its own, two stores behind faulty networks, and what can happen to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from leader.events import FilesCommand
from leader.timing import Timing
from store.errors import ConnectionLost, StoreError
from tests.simulation.client import Client, Link
from tests.simulation.ensemble import Ensemble
from tests.simulation.namespace import Namespace
from tests.simulation.wires import Wires
from tests.simulation.world import Call, World

T = TypeVar("T")

LATENCY = 0.001
"""Seconds that one way to the NameNode takes."""

START = 1000.0
"""What every clock shows at first."""

_CLOSED = ConnectionLost("The NameNode has ended itself.")


@dataclass
class Fault:
    """What becomes of one command for the file system: of the next one that fits."""

    fits: Callable[[FilesCommand], bool]
    delay: float = LATENCY
    """Seconds after which it is executed, even if its sender is gone by then."""
    lost: bool = False
    """The answer goes missing."""
    dropped: bool = False
    """It is never executed, and nobody says so."""
    error: StoreError | None = None
    """It is refused with this."""
    then: Callable[[], None] | None = None
    """Happens right after it was sent."""


class Host:
    """A process; of its state nothing survives a crash."""

    def __init__(
        self,
        world: World,
        name: str,
        files: Namespace,
        ensemble: Ensemble | None,
        timing: Timing,
        wires: Wires | None = None,
    ) -> None:
        self.wires = wires
        self.world, self.name, self.files, self.ensemble, self.timing = world, name, files, ensemble, timing
        self.rate = 1.0
        """How fast its clock goes."""
        self.alive = True
        self.files_link = Link()
        self.peers = Link()
        self.jitter = 0.0
        """Seconds more, at most, that a command for the file system takes."""
        self.faults: list[Fault] = []
        self._dice = world.dice(f"host {name}")
        self._paused: list[Callable[[], None]] | None = None
        self.client: Client | None = None
        if ensemble is not None:
            self.client = Client(world, ensemble, timing.session_timeout, self.run, name=name)
            self.client.frozen = lambda: self.paused

    # --- time

    def now(self) -> float:
        """What its clock shows."""
        return START + self.world.now * self.rate

    def true(self, when: float) -> float:
        """The true time at which its clock shows that."""
        return (when - START) / self.rate

    def call_at(self, when: float, callback: Callable[[], None]) -> Call:
        # The microsecond makes up for rounding: a call that comes too early would be asked for again without end.
        call = self.world.at(self.true(when) + 1e-6, lambda: self.run(go_off))

        def go_off() -> None:
            if call.callback is not None:  # it may have been cancelled since, by a process that slept until now
                callback()

        return call

    def run(self, callback: Callable[[], None]) -> None:
        """Do that: now, when it goes on, or never."""
        if not self.alive:
            return
        if self._paused is not None:
            self._paused.append(callback)
            return
        callback()

    # --- what happens to it

    @property
    def paused(self) -> bool:
        return self._paused is not None

    def pause(self) -> None:
        if self._paused is None:
            self._paused = []

    def resume(self) -> None:
        waiting, self._paused = self._paused or [], None
        for callback in waiting:
            self.run(callback)  # which waits again if one of them has paused the process

    def crash(self) -> None:
        """It is gone, on a host that lives; its ZooKeeper session ends when the server notices."""
        self.alive = False
        if self.client is not None:
            self.client.stop()
        if self.wires is not None:
            self.wires.ended(self)

    def lose(self) -> None:
        """It is gone, and its host with it."""
        if self.wires is not None:
            self.wires.lost(self)
        self.crash()

    def cut_off_zookeeper(self) -> None:
        """No message goes to ZooKeeper or comes from it, and the process knows at once."""
        if self.client is not None:
            self.client.link.there = self.client.link.back = False
            self.client.drop()

    def zookeeper_hangs(self) -> None:
        """Its server takes the connection, and answers nothing."""
        assert self.client is not None
        self.client.link.hangs = True

    def zookeeper_answers(self) -> None:
        """Its server answers again."""
        assert self.client is not None
        self.client.link.hangs = False

    # --- the file system

    def send(
        self, fault: Fault | None, execute: Callable[[], T], answer: Callable[[T | None, StoreError | None], None]
    ) -> None:
        """Send one request to the NameNode; the answer may never come, and the request may be executed all the same."""
        delay = self.files_link.delay + (self._dice.uniform(0, self.jitter) if self.jitter else 0.0)
        wait = (fault.delay if fault else LATENCY) + delay
        lost = fault is not None and fault.lost

        held_up = wait > self.timing.call_timeout

        def arrive() -> None:
            self.files.late -= held_up
            unwritten = self.files.unwritten
            value: T | None = None
            error = fault.error if fault else None
            if error is None:
                try:
                    value = execute()
                except StoreError as refused:
                    error = refused
            if not lost:
                self.files.answer(lambda: go_back(value, error), lambda: go_back(None, _CLOSED), unwritten=unwritten)

        def go_back(value: T | None, error: StoreError | None) -> None:
            self.world.after(LATENCY + delay, lambda: returned(value, error))

        def returned(value: T | None, error: StoreError | None) -> None:
            if self.files_link.back:
                self.run(lambda: answer(value, error))

        if self.files_link.there and not (fault is not None and fault.dropped):
            self.files.late += held_up
            self.world.after(wait, lambda: self.files.arrive(arrive))
        if fault is not None and fault.then is not None:
            self.world.after(0.0, fault.then)

    def fault_for(self, command: FilesCommand) -> Fault | None:
        """Take the fault that waits for such a command, if there is one."""
        for fault in self.faults:
            if fault.fits(command):
                self.faults.remove(fault)
                return fault
        return None
