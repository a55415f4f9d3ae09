"""Blocking code in virtual time: production's readers and counters call stores and sleep as they do on threads.

Each task is a greenlet: it runs until it waits, and goes on when its host lets it. One runs at a time, so a run is
replayed exactly.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from greenlet import greenlet

from leader.layout import znodes as nodes
from store.errors import DeadlineExceeded, StoreError
from store.files import Entry, Files
from store.outcome import Outcome
from store.zookeeper import Connection, Event, Get, Kind, Operation, Stat, Sync
from store.zookeeper.operations import Watcher
from store.zookeeper.session_client import Listener
from tests.system.simulation.client import Client
from tests.system.simulation.host import Host

T = TypeVar("T")

LOOK_AGAIN = 0.05
"""Seconds after which a wait for an event looks at it again."""


class Tasks:
    """All tasks of a world, so that none outlives it."""

    def __init__(self) -> None:
        self._all: list[greenlet] = []

    def spawn(self, work: Callable[[], None]) -> None:
        """Start a task, and return when it waits for the first time."""
        task = greenlet(work)
        self._all.append(task)
        task.switch()

    def end(self) -> None:
        """End all tasks where they wait."""
        for task in self._all:
            if not task.dead:
                task.throw()


def wait_for(begin: Callable[[Callable[[T], None]], None]) -> T:
    """Start an action, wait for its callback and return the callback's argument. It comes later, and once."""
    task = greenlet.getcurrent()
    parent = task.parent
    assert parent is not None, "only a task may wait"
    begin(task.switch)
    return cast("T", parent.switch())


class SimulatedClock:
    """A host's clock, for blocking code."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def now(self) -> float:
        return self._host.now()

    def sleep(self, seconds: float) -> None:
        host = self._host

        def begin(resume: Callable[[None], None]) -> None:
            host.call_at(host.now() + seconds, lambda: resume(None))

        wait_for(begin)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        end = self.now() + seconds
        while not event.is_set() and self.now() < end:
            self.sleep(min(LOOK_AGAIN, end - self.now()))
        return event.is_set()


class SimulatedFiles:
    """A store driver: each call is one request to the NameNode, and waits for its answer without a deadline."""

    uri = "simulated://"

    def __init__(self, host: Host) -> None:
        self._host = host

    def list(self, path: str) -> list[Entry]:
        found = self._ask(lambda: self._host.files.entries(path))
        return [
            Entry(
                name, is_directory=each.data is None, size=len(each.data or b""), modified_ms=int(each.modified * 1000)
            )
            for name, each in found.items()
        ]

    def rename(self, source: str, destination: str) -> None:
        self._ask(lambda: self._host.files.rename(source, destination, self._host.name))

    def make_directory(self, path: str) -> None:
        self._ask(lambda: self._host.files.make(path, self._host.name))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._ask(lambda: self._host.files.delete(path, self._host.name, recursive=recursive))

    def read(self, path: str, limit: int) -> bytes:
        del limit
        return self._ask(lambda: self._host.files.read(path))

    def write(self, path: str, data: bytes) -> None:
        self._ask(lambda: self._host.files.write(path, data, self._host.name))

    def _ask(self, execute: Callable[[], T]) -> T:
        def begin(resume: Callable[[tuple[T | None, StoreError | None]], None]) -> None:
            self._host.send(None, execute, lambda value, error: resume((value, error)))

        answer: tuple[T | None, StoreError | None] = wait_for(begin)
        value, error = answer
        if error is not None:
            raise error
        return cast("T", value)


class SimulatedBoundedFiles:
    """Stands in for :class:`store.bounded.BoundedFiles`: every call ends in time, and one given up may still go on."""

    uri = "simulated://"

    def __init__(self, host: Host, tasks: Tasks) -> None:
        self._host = host
        self._tasks = tasks
        self._driver = cast("Files", SimulatedFiles(host))

    def call(self, name: str, operation: Callable[[Files], T], timeout: float) -> T:
        return self.outcome(name, operation, timeout).result()

    def outcome(self, name: str, operation: Callable[[Files], T], timeout: float) -> Outcome[T]:
        return wait_for(lambda resume: self.submit(name, operation, timeout, resume))

    def submit(
        self, name: str, operation: Callable[[Files], T], timeout: float, done: Callable[[Outcome[T]], None]
    ) -> None:
        host, started, over = self._host, self._host.now(), False

        def end(value: T | None, error: StoreError | None) -> None:
            nonlocal over
            if not over:
                over = True
                deadline.cancel()
                done(Outcome(value, error, started, host.now()))

        def work() -> None:
            value: T | None = None
            error: StoreError | None = None
            try:
                value = operation(self._driver)
            except StoreError as failed:
                error = failed
            host.world.after(0.0, lambda: host.run(lambda: end(value, error)))

        late = DeadlineExceeded(f"{name} was not answered in time.")
        host.world.after(0.0, lambda: host.run(lambda: self._tasks.spawn(work)))
        deadline = host.call_at(started + timeout, lambda: end(None, late))


@dataclass(frozen=True)
class _Fired:
    """A watch callback. Equal for equal watches, as a client needs it."""

    watch: Watcher

    def __call__(self) -> None:
        self.watch(Event(Kind.CHANGED, ""))


def _ignore() -> None:
    """Ignore a change of an unwatched node."""


class SimulatedZooKeeper:
    """The part of :class:`store.zookeeper.ZooKeeper` that a reader needs."""

    def __init__(self, host: Host, client: Client) -> None:
        self._host = host
        self._client = client
        self._started = False

    @property
    def state(self) -> Connection:
        return Connection.CONNECTED if self._client.is_connected else Connection.SUSPENDED

    def start(self) -> None:
        if not self._started:
            self._started = True
            self._client.start()

    def wait(self, timeout: float, *_: Connection) -> Connection:
        clock = SimulatedClock(self._host)
        end = clock.now() + timeout
        while not self._client.is_connected and clock.now() < end:
            clock.sleep(min(LOOK_AGAIN, end - clock.now()))
        return self.state

    def add_listener(self, listener: Listener) -> None:
        """Tell the listener of every connection that is made or lost."""
        self._client.connected.append(lambda *_: listener(Connection.CONNECTED))
        self._client.disconnected.append(lambda: listener(Connection.SUSPENDED))

    def remove_listener(self, listener: Listener) -> None:
        """Do nothing: the world ends, and listeners hear no more."""
        del listener

    def call(self, operation: Operation[T], timeout: float) -> T:
        """Execute a command, and wait for the answer.

        Raises:
            StoreError: the command was refused, or the answer did not come in time.
        """
        assert isinstance(operation, Get | Sync), "no reader asks anything else"
        path = operation.path
        command = nodes.ReadNode(path) if isinstance(operation, Get) else nodes.Sync(path)
        host = self._host

        def begin(resume: Callable[[tuple[nodes.Node | None, StoreError | None]], None]) -> None:
            over = False

            def answered(value: nodes.Node | None, error: StoreError | None) -> None:
                nonlocal over
                if not over:
                    over = True
                    deadline.cancel()
                    resume((value, error))

            watch = operation.watch if isinstance(operation, Get) else None
            self._client.request(command, answered, _Fired(watch) if watch is not None else _ignore)
            deadline = host.call_at(
                host.now() + timeout, lambda: answered(None, DeadlineExceeded("No answer in time."))
            )

        answer: tuple[nodes.Node | None, StoreError | None] = wait_for(begin)
        node, error = answer
        if error is not None:
            raise error
        if node is None:
            return cast("T", None)
        return cast("T", (node.data, Stat(node.version, node.owner, 0, len(node.data), 0)))
