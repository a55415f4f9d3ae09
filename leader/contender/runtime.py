"""Runtime: production's environment of the election. One thread handles all events in order."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from leader.contender.liveness_probe import LivenessProbes
from leader.election import events
from leader.election.events import FilesCommand
from leader.election.ports import FilesAnswer, Heard, LivenessProbe, NodeAnswer, Timer
from leader.layout.contact import ContactAddress
from leader.layout.names import RECORD
from leader.layout.tree import create
from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from leader.timing import CONFIRMATIONS_PER_SESSION, Timing
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotSent
from store.files import Files
from store.outcome import Outcome
from store.zookeeper import Connection, Create, Delete, Event, Get, Kind, Operation, Session, Set, Stat, ZooKeeper
from store.zookeeper import Sync as SyncPath

T = TypeVar("T")

# Seconds; an event loop takes no longer one. A timer that fires early costs a look at the clock.
LONGEST_TIMER = 86_400.0

_log = logging.getLogger(__name__)


class Connected(Protocol):
    """A listener that learns on the runtime's thread whether ZooKeeper is connected."""

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected, with a session of this id and this negotiated timeout in seconds."""

    def disconnected(self) -> None:
        """ZooKeeper is not connected, or the session is over."""


class Runtime:
    """Executes commands on the real stores for contenders and mirrors, all on one thread."""

    # The thread is asyncio's event loop, used as a queue with timers: no callback awaits anything.

    def __init__(self, name: str, timing: Timing, files: BoundedFiles, zookeeper: ZooKeeper | None) -> None:
        """Start the thread, and ZooKeeper if there is one; the caller closes both stores."""
        self.timing = timing
        self._files = files
        self._zookeeper = zookeeper
        self._node_timeout = timing.session_timeout / CONFIRMATIONS_PER_SESSION
        self._loop = asyncio.new_event_loop()
        self._probes = LivenessProbes(self._loop)
        self._thread = threading.Thread(target=self._run, name=f"ha-{name}", daemon=True)
        self._attached: list[Connected] = []
        self._thread.start()
        if zookeeper is not None:
            zookeeper.add_listener(self._zookeeper_changed)
            zookeeper.start()

    # --- for other threads

    def attach(self, connected: Connected) -> None:
        """Tell the listener from now on whether ZooKeeper is connected."""

        def attach() -> None:
            self._attached.append(connected)
            if (session := self._session()) is not None:
                connected.connected(session.id, session.timeout)

        self.post(attach)

    def post(self, callback: Callable[[], object]) -> None:
        """Run a callback on the thread, after all that were posted before; does nothing once the runtime is closed."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            _log.debug("The runtime is closed; %r is not called.", callback)

    def ask(self, question: Callable[[], T], timeout: float) -> T:
        """Run a function on the thread, from another one, and return its result; TimeoutError after so many seconds."""
        answer: Future[T] = Future()

        def call() -> None:
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001  # it is raised where it was asked
                answer.set_exception(error)

        self.post(call)
        return answer.result(timeout)

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the thread, in small steps between the other events."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the thread. A lease that was not given back runs out."""
        if self._zookeeper is not None:
            self._zookeeper.remove_listener(self._zookeeper_changed)
        if self._loop.is_closed():
            return
        self.post(self._loop.stop)
        self._thread.join(timeout=5.0)

    # --- the environment of the contender

    def now(self) -> float:
        """Boot-clock seconds."""
        return now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Run a callback at a time of the boot clock."""
        return self._loop.call_later(min(max(0.0, when - now()), LONGEST_TIMER), callback)

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Execute a command for the file system."""
        name = type(command).__name__
        self._files.submit(
            name,
            lambda driver: execute(driver, job, command),
            self.timing.call_timeout,
            lambda outcome: self.post(lambda: answer(outcome)),
        )

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Execute a command for ZooKeeper."""

        def done(outcome: Outcome[Any]) -> None:
            node = _node(outcome.value) if isinstance(command, ReadNode) and outcome.done else None
            self.post(lambda: answer(Outcome(node, outcome.error, outcome.started, outcome.ended)))

        if self._zookeeper is None:
            done(Outcome(None, NotSent("No ZooKeeper is configured."), now(), now()))
            return
        self._zookeeper.submit(_operation(command, _Watch(self.post, changed)), self._node_timeout, done)

    def probe(self, address: ContactAddress, on_event: Callable[[Heard], None]) -> LivenessProbe:
        """Connect to a process and report events about it."""
        return self._probes.probe(address, on_event)

    # --- the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._probes.close()
            self._loop.close()

    def _zookeeper_changed(self, state: Connection) -> None:
        session = self._session() if state is Connection.CONNECTED else None
        self.post(lambda: self._tell(session))

    def _session(self) -> Session | None:
        zookeeper = self._zookeeper
        return zookeeper.session if zookeeper is not None and zookeeper.state is Connection.CONNECTED else None

    def _tell(self, session: Session | None) -> None:
        for connected in list(self._attached):
            if session is None:
                connected.disconnected()
            else:
                connected.connected(session.id, session.timeout)


@dataclass(frozen=True, slots=True)
class _Watch:
    """Passes a watch event to the thread. Equal callbacks make equal watches, so a client keeps one, not hundreds."""

    post: Callable[[Callable[[], object]], None]
    changed: Callable[[], None]

    def __call__(self, event: Event) -> None:
        # A lost connection is reported once, to everything attached; it changes no node.
        if event.kind is not Kind.LOST:
            self.post(self.changed)


def _node(value: tuple[bytes, Stat] | None) -> Node | None:
    if value is None:
        return None
    data, stat = value
    return Node(data, stat.ephemeral_owner, stat.version)


def _operation(command: NodeCommand, watch: Callable[[Event], None]) -> Operation[Any]:
    match command:
        case Sync(path):
            return SyncPath(path)
        case ReadNode(path, watched):
            return Get(path, watch if watched else None)
        case CreateNode(path, data, ephemeral):
            return Create(path, data, ephemeral=ephemeral, make_parents=True)
        case WriteNode(path, data, version):
            return Set(path, data, version)
        case DeleteNode(path, version):
            return Delete(path, version)


def execute(files: Files, job: str, command: FilesCommand) -> list[str] | None:
    """Execute one command of an election on a job's tree; a list returns names."""
    match command:
        case events.ListJob():
            return [entry.name for entry in files.list(job)]
        case events.ListRecord(directory):
            return [entry.name for entry in files.list(f"{job}/{directory.name}/{RECORD}")]
        case events.CreateJob():
            create(files, job)
        case events.Rename(source, destination):
            files.rename(f"{job}/{source}", f"{job}/{destination}")
        case events.MakeDirectory(path):
            files.make_directory(f"{job}/{path}")
        case events.Delete(path):
            files.delete(f"{job}/{path}")
    return None
