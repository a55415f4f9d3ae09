"""Simulated host: one process with a clock of its own, two stores behind faulty networks, and faults."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from leader.election.events import FilesCommand
from leader.election.ports import NodeAnswer
from leader.layout.znodes import Node, NodeCommand
from leader.timing import Timing
from store.errors import ConnectionLost, NotSent, StoreError
from store.outcome import Outcome
from tests.system.simulation.client import Client, Link, slowly
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import Call, World

T = TypeVar("T")

LATENCY = 0.001
"""Seconds that one way to the NameNode takes."""

START = 1000.0
"""The first time on every clock."""


@dataclass
class Fault:
    """The fate of one command for the file system: the next one that matches."""

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
    answered: Callable[[], None] | None = None
    """Happens right after its sender has taken the answer."""


class Host:
    """One process; none of its state survives a crash."""

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
        self.slow_files = 0
        """How many disturbances make the NameNode's answers slow now."""
        self.faults: list[Fault] = []
        self._dice = world.dice(f"host {name}")
        self._slow_dice = world.dice(f"slow {name}")
        self._paused: list[Callable[[], None]] | None = None
        self.client: Client | None = None
        if ensemble is not None:
            self.client = Client(world, ensemble, timing.session_timeout, self.run, name=name)
            self.client.frozen = lambda: self.paused

    # --- time

    def now(self) -> float:
        """Return the time on its clock."""
        return START + self.world.now * self.rate

    def true(self, when: float) -> float:
        """Return the true time at which its clock shows that."""
        return (when - START) / self.rate

    def call_at(self, when: float, callback: Callable[[], None]) -> Call:
        # The microsecond makes up for rounding: a call that comes too early would be scheduled again for ever.
        call = self.world.at(self.true(when) + 1e-6, lambda: self.run(go_off))

        def go_off() -> None:
            if call.callback is not None:  # a process that slept until now may have cancelled it
                callback()

        return call

    def run(self, callback: Callable[[], None]) -> None:
        """Run a callback now, when the process wakes up, or never."""
        if not self.alive:
            return
        if self._paused is not None:
            self._paused.append(callback)
            return
        callback()

    # --- ZooKeeper

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """See :meth:`leader.election.ports.Environment.run_node`."""
        started = self.now()

        def answered(value: Node | None, error: StoreError | None) -> None:
            answer(Outcome(value, error, started, self.now()))

        if self.client is None:
            refused = NotSent("There is no ZooKeeper.")
            self.world.after(0.0, lambda: self.run(lambda: answered(None, refused)))
        else:
            self.client.request(command, answered, changed)

    # --- faults

    @property
    def paused(self) -> bool:
        return self._paused is not None

    def pause(self) -> None:
        if self._paused is None:
            self._paused = []

    def resume(self) -> None:
        waiting, self._paused = self._paused or [], None
        for callback in waiting:
            self.run(callback)  # the rest waits again if one of them has paused the process

    def crash(self) -> None:
        """End the process on a living host; its ZooKeeper session ends when the server notices."""
        self.alive = False
        if self.client is not None:
            self.client.stop()
        if self.wires is not None:
            self.wires.ended(self)

    def lose(self) -> None:
        """End the process together with its host."""
        if self.wires is not None:
            self.wires.lost(self)
        self.crash()

    def cut_off_zookeeper(self) -> None:
        """Cut all messages to and from ZooKeeper; the process knows at once."""
        if self.client is not None:
            self.client.link.there = self.client.link.back = False
            self.client.drop()

    def zookeeper_hangs(self) -> None:
        """Let its server take the connection and answer nothing."""
        assert self.client is not None
        self.client.link.hangs = True

    def zookeeper_answers(self) -> None:
        """Let its server answer again."""
        assert self.client is not None
        self.client.link.hangs = False

    # --- the file system

    def send(
        self, fault: Fault | None, execute: Callable[[], T], answer: Callable[[T | None, StoreError | None], None]
    ) -> None:
        """Send one request to the NameNode. The answer may never come, although the request may be executed."""
        there, back = self._delays()
        wait = (fault.delay if fault else LATENCY) + there
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
                self.files.answer(lambda: go_back(value, error), lambda: go_back(None, _closed()), unwritten=unwritten)

        def go_back(value: T | None, error: StoreError | None) -> None:
            self.world.after(LATENCY + back, lambda: returned(value, error))

        def returned(value: T | None, error: StoreError | None) -> None:
            if self.files_link.back:
                self.run(lambda: answer(value, error))

        if self.files_link.there and not (fault is not None and fault.dropped):
            self.files.late += held_up
            self.world.after(wait, lambda: self.files.arrive(arrive))
        if fault is not None and fault.then is not None:
            self.world.after(0.0, fault.then)

    def _delays(self) -> tuple[float, float]:
        """Return the seconds more that a request takes to the NameNode, and its answer back."""
        if self.slow_files:
            return slowly(self._slow_dice, self.timing.call_timeout)
        delay = self.files_link.delay + (self._dice.uniform(0, self.jitter) if self.jitter else 0.0)
        return delay, delay

    def fault_for(self, command: FilesCommand) -> Fault | None:
        """Take the fault that waits for such a command, if any."""
        for fault in self.faults:
            if fault.fits(command):
                self.faults.remove(fault)
                return fault
        return None


def _closed() -> ConnectionLost:
    """Return a new error each time: one that is kept and raised again would keep its frames, and their world, alive."""
    return ConnectionLost("The NameNode has ended itself.")
