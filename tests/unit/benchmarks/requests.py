"""Hosts of the simulator that record each request to a store."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from ha.agent.agent import LEAST_PAUSE, LOOKS_PER_FRESHNESS
from ha.config.settings import Settings
from leader.contender.runtime import _operation
from leader.election.ports import NodeAnswer
from leader.layout import znodes as nodes
from leader.layout.znodes import Node, NodeCommand, ReadNode
from leader.lookup.reader import Reader
from leader.timing import Timing
from store.errors import DeadlineExceeded, NotFound, StoreError
from store.outcome import Outcome
from store.zookeeper import Connection, Event, Get, Kind, Operation, Stat, Sync
from store.zookeeper.operations import Watcher, Wire
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, SimulatedZooKeeper, Tasks, wait_for
from tests.system.simulation.client import Client
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.host import Fault, Host
from tests.system.simulation.lending import Holder
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.process import Process
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World

T = TypeVar("T")

SETTINGS = Settings()
"""The default settings: the counted costs are theirs."""

ON_THE_WIRE = {
    "get_async": "zookeeper reads",
    "exists_async": "zookeeper reads",
    "get_children_async": "zookeeper reads",
    "sync_async": "zookeeper syncs",
    "create_async": "zookeeper writes",
    "set_async": "zookeeper writes",
    "delete_async": "zookeeper writes",
}


class Nothing:
    def __call__(self, *_: Any, **__: Any) -> "Nothing":
        return self

    def __getattr__(self, _: str) -> "Nothing":
        return self


@dataclass
class Requests:
    world: World
    sent: list[tuple[float, str]] = field(default_factory=list)

    def add(self, kind: str) -> None:
        self.sent.append((self.world.now, kind))

    def missed(self) -> None:
        """A read with a watch has found no node: the watch takes two requests more."""
        self.add("zookeeper reads")
        self.add("zookeeper reads")

    def operation(self, operation: Operation[Any]) -> None:
        operation.send(Wire(_Kazoo(self.add), "", lambda: True))


class _Kazoo:
    def __init__(self, add: Callable[[str], None]) -> None:
        self._add = add
        self.handler = Nothing()

    def __getattr__(self, name: str) -> Callable[..., Nothing]:
        self._add(ON_THE_WIRE[name])
        return Nothing()


class Counted(Host):
    def __init__(
        self,
        world: World,
        name: str,
        files: Namespace,
        ensemble: Ensemble | None,
        timing: Timing,
        wires: Wires | None = None,
    ) -> None:
        super().__init__(world, name, files, ensemble, timing, wires)
        self.requests = Requests(world)
        self.zookeeper.connected.append(lambda *_: self.requests.add("zookeeper connections"))

    @property
    def zookeeper(self) -> Client:
        assert self.client is not None, "what is counted has a ZooKeeper"
        return self.client

    @property
    def reaches_zookeeper(self) -> bool:
        """Whether a request would be sent; a client that is about to notice a lost connection sends none."""
        return self.zookeeper.is_connected and self.ensemble is not None and self.ensemble.up

    def send(
        self, fault: Fault | None, execute: Callable[[], T], answer: Callable[[T | None, StoreError | None], None]
    ) -> None:
        """One call of a files driver, which the NameNode gets to see unless it is cut off."""

        def counted() -> T:
            before = self.files.writes
            try:
                return execute()
            finally:
                self.requests.add("namenode writes" if self.files.writes > before else "namenode reads")

        super().send(fault, counted, answer)

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        if not self.reaches_zookeeper:
            super().run_node(command, answer, changed)
            return
        self.requests.operation(_operation(command, lambda _: None))
        watched = isinstance(command, ReadNode) and command.watch

        def answered(outcome: Outcome[Node | None]) -> None:
            if watched and isinstance(outcome.error, NotFound):
                self.requests.missed()
            answer(outcome)

        super().run_node(command, answered, changed)


class CountedHolder(Holder, Counted):
    """A process that holds its host's session."""


class CountedContender(Process, Counted):
    def contend(self, jobs: list[str]) -> "CountedContender":
        for job in jobs:
            self.contender.join(job, self)
            self.contender.contend(job)
        self.zookeeper.start()
        return self


class CountedAgent(Counted):
    """Routine work of an agent: it repeatedly looks up each job that its host asks about."""

    def __init__(self, world: World, name: str, files: Namespace, ensemble: Ensemble | None, timing: Timing) -> None:
        super().__init__(world, name, files, ensemble, timing)
        self.heard: list[tuple[float, str, int]] = []
        """True time, job and epoch of each lookup that found a leader."""

    def ask(self, jobs: list[str], tasks: Tasks) -> "CountedAgent":
        clock = SimulatedClock(self)
        reader = Reader(
            SimulatedBoundedFiles(self, tasks),  # type: ignore[arg-type]
            _Watched(self, self.zookeeper),  # type: ignore[arg-type]
            self.timing,
            audit=SETTINGS.leadership.audit,
            clock=clock,
            rng=self._dice,
        )
        for job in jobs:
            tasks.spawn(partial(self._keep, reader, job))
        return self

    def _keep(self, reader: Reader, job: str) -> None:
        every = max(LEAST_PAUSE, SETTINGS.leadership.fresh / LOOKS_PER_FRESHNESS)
        for look in reader.looks(job, threading.Event(), every=every):
            if look.answer is not None:
                self.heard.append((self.world.now, job, look.answer.epoch))


@dataclass(frozen=True)
class _Told:
    """Tells a watcher; equal for equal ones, as in the real client."""

    watcher: Watcher
    path: str

    def __call__(self) -> None:
        self.watcher(Event(Kind.CHANGED, self.path))


class _Watched(SimulatedZooKeeper):
    def __init__(self, host: Counted, client: Client) -> None:
        super().__init__(host, client)
        self._counted = host
        self._listeners: list[Callable[[Connection], None]] = []
        client.connected.append(lambda *_: self._tell(Connection.CONNECTED))
        client.disconnected.append(lambda: self._tell(Connection.SUSPENDED))

    def add_listener(self, listener: Callable[[Connection], None]) -> None:
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[Connection], None]) -> None:
        self._listeners.remove(listener)

    def _tell(self, state: Connection) -> None:
        for listener in self._listeners:
            listener(state)

    def call(self, operation: Operation[T], timeout: float) -> T:
        assert isinstance(operation, Get | Sync), "no reader asks anything else"
        if self._counted.reaches_zookeeper:
            self._counted.requests.operation(operation)
        watcher = operation.watch if isinstance(operation, Get) else None
        told = _Told(watcher, operation.path) if watcher is not None else None
        reads, path = isinstance(operation, Get), operation.path
        command = nodes.ReadNode(path, watch=told is not None) if reads else nodes.Sync(path)
        try:
            return cast("T", self._answer(command, timeout, told))
        except NotFound:
            if told is not None:
                self._counted.requests.missed()
            raise

    def _answer(self, command: NodeCommand, timeout: float, told: _Told | None) -> object:
        host = self._host

        def begin(resume: Callable[[tuple[nodes.Node | None, StoreError | None]], None]) -> None:
            over = False

            def answered(value: nodes.Node | None, error: StoreError | None) -> None:
                nonlocal over
                if not over:
                    over = True
                    deadline.cancel()
                    resume((value, error))

            late = DeadlineExceeded("No answer in time.")
            deadline = host.call_at(host.now() + timeout, lambda: answered(None, late))
            self._client.request(command, answered, told or (lambda: None))

        answer: tuple[nodes.Node | None, StoreError | None] = wait_for(begin)
        node, error = answer
        if error is not None:
            raise error
        return (node.data, Stat(node.version, node.owner, 0, len(node.data), 0)) if node is not None else None
