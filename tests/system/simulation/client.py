"""Simulated ZooKeeper client of a process: one connection at a time, heartbeats, requests that end in time.

It behaves as :mod:`store.zookeeper` does: requests are bounded, a connection that falls silent is given up after two
thirds of the session timeout, and the session is resumed on another server if it still lives.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from leader.layout.znodes import Node, NodeCommand, ReadNode
from leader.timing import CONFIRMATIONS_PER_SESSION
from store.errors import ConnectionLost, DeadlineExceeded, NotSent, StoreError
from tests.system.simulation.ensemble import Ensemble, Server, Session
from tests.system.simulation.world import Call, World

LATENCY = 0.0005
SLOW = (0.2, 0.9)
"""How long a slow answer takes, as shares of the time-out: it comes in time."""

ON_THE_WAY_THERE = (0.05, 0.95, 0.95, 0.95)
"""Shares of that time after which the store executes the request."""

RECONNECT_EVERY = 0.5
"""Seconds, on average, between two tries to connect."""

Answered = Callable[[Node | None, StoreError | None], None]
Run = Callable[[Callable[[], None]], None]
"""Has the process do something, once it can."""


def slowly(dice: random.Random, timeout: float) -> tuple[float, float]:
    """Draw how long a request is under way, and how long its answer; both together are within the time-out."""
    took = timeout * dice.uniform(*SLOW)
    there = took * dice.choice(ON_THE_WAY_THERE)
    return there, took - there


@dataclass
class Link:
    """The fate of messages between a process and a store."""

    there: bool = True
    """Whether requests arrive."""
    back: bool = True
    """Whether answers arrive."""
    delay: float = 0.0
    """Seconds more for each way."""
    hangs: bool = False
    """The server takes the connection, and nothing else."""

    @property
    def open(self) -> bool:
        return self.there and self.back and not self.hangs


@dataclass(eq=False)
class _Request:
    command: NodeCommand
    answered: Answered
    changed: Callable[[], None]
    over: bool = False
    deadline: Call | None = None
    back: float = 0.0
    """Seconds more that the answer takes."""


@dataclass(eq=False)
class _Connection:
    server: Server
    session: Session
    heard_at: float
    waiting: deque[_Request] = field(default_factory=deque)
    """The requests that have arrived at the server, which serves a client in order."""
    arrived: float = 0.0
    returned: float = 0.0
    """When the last request arrives, and the last answer."""
    undecided: int = 0
    """The requests that the server is having decided: until then a read of the same client waits."""
    requests: list[_Request] = field(default_factory=list)
    watches: list[Callable[[], None]] = field(default_factory=list)
    untold: list[Callable[[], None]] = field(default_factory=list)
    """Events of watches that are held up on the way back: as with TCP, no answer overtakes them."""
    broken: bool = False


@dataclass(frozen=True)
class _Watch:
    """Equal watches of one connection are one watch, as in the real client."""

    client: "Client"
    connection: _Connection
    changed: Callable[[], None]

    def __call__(self) -> None:
        self.client.told(self.connection, self.changed)


class Client:
    """One process's connection to ZooKeeper."""

    def __init__(self, world: World, ensemble: Ensemble, timeout: float, run: Run, *, name: str = "") -> None:
        """Connect to nothing yet.

        Args:
            world: virtual time.
            ensemble: the servers to connect to.
            timeout: of the session, seconds.
            run: runs a callback in the process.
            name: of the process, for its dice.
        """
        self.link = Link()
        self.connected: list[Callable[[int, float], None]] = []
        self.disconnected: list[Callable[[], None]] = []
        self.reconnects = True
        self.session: Session | None = None
        self.stopped = False
        self.frozen: Callable[[], bool] = lambda: False
        """Whether the process is paused: then its heartbeats are, too."""
        self._world, self._ensemble, self._timeout, self._run = world, ensemble, timeout, run
        self._dice = world.dice(f"client {name}")
        self._connection: _Connection | None = None
        self._retry: Call | None = None
        self.slow = 0
        """How many disturbances make ZooKeeper's answers slow now."""
        self._slow_dice = world.dice(f"slow client {name}")

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def server(self) -> Server | None:
        """Return the server that the client is connected to."""
        return self._connection.server if self._connection is not None else None

    def start(self) -> None:
        """Connect now and after every break, and send heartbeats."""
        self.connect()
        self._beat()

    def stop(self) -> None:
        """Stop, because the process is gone: it sends nothing any more."""
        self.stopped = True
        self._connection = None

    # --- connection

    def connect(self) -> None:
        """Try to connect until it succeeds."""
        if self.stopped or self._connection is not None:
            return
        self.reconnects = True
        candidates = [server for server in self._ensemble.servers if server.leads_to_quorum]
        if candidates and self.link.open and not self.frozen() and not self._ensemble.stalled:
            server = candidates[0] if len(candidates) == 1 else self._dice.choice(candidates)
            self._connected_to(server)
        else:
            self._reconnect_in(self._dice.uniform(0.5, 1.5) * RECONNECT_EVERY)

    def _reconnect_in(self, seconds: float) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._world.after(seconds, self._reconnect)

    def _reconnect(self) -> None:
        if self.reconnects:
            self.connect()

    def _connected_to(self, server: Server) -> None:
        if self.session is None or self.session.id not in self._ensemble.sessions:
            self.session = self._ensemble.open(self._timeout)
        session = self.session
        self._ensemble.touch(session)  # resuming a session is decided by the quorum
        connection = self._connection = _Connection(server, session, self._world.now)
        session.connection = connection
        session.lost = lambda: self._session_lost(connection)
        server.broken.append(lambda: self._break(connection))
        for each in self.connected:
            self._run(partial(each, session.id, session.timeout))

    def drop(self) -> None:
        """Break the connection, and stay away until told to connect."""
        self.reconnects = False
        if self._connection is not None:
            self._break(self._connection)

    def _session_lost(self, connection: _Connection) -> None:
        if connection is self._connection and self.link.open:
            self._break(connection)

    def _break(self, connection: _Connection) -> None:
        """The client notices that its connection is gone."""
        if connection.broken:
            return
        connection.broken = True
        for request in connection.requests:
            self._answer(request, None, ConnectionLost("The connection broke."))
        if connection is not self._connection:
            return
        self._connection = None
        for each in self.disconnected:
            self._run(each)
        if self.reconnects and not self.stopped:
            self._reconnect_in(self._dice.uniform(0.01, 0.1))

    def _beat(self) -> None:
        if self.stopped:
            return
        self._world.after(self._timeout / 6, self._beat)
        connection = self._connection
        if connection is None or self.frozen():
            return
        if self._world.now - connection.heard_at > self._timeout * 2 / 3:
            self._break(connection)
            return
        self._world.after(LATENCY + self.link.delay, lambda: self._beat_arrives(connection))

    def _beat_arrives(self, connection: _Connection) -> None:
        if not self._arrives(connection):
            return
        if connection.session.id not in self._ensemble.sessions:
            self._session_lost(connection)
            return
        connection.server.hear(connection.session)
        self._world.after(LATENCY + self.link.delay, lambda: self._beat_returns(connection))

    def _beat_returns(self, connection: _Connection) -> None:
        if self._returns(connection):
            self._tell_all(connection)
            connection.heard_at = self._world.now

    def _arrives(self, connection: _Connection) -> bool:
        open_ = self.link.there and not self.link.hangs
        return open_ and connection.server.serves and not connection.broken and not self.stopped

    def _returns(self, connection: _Connection) -> bool:
        return self.link.back and not self.link.hangs and not connection.broken

    # --- requests

    def told(self, connection: _Connection, changed: Callable[[], None]) -> None:
        """Take a watch event from the server."""
        if self._returns(connection):
            self._run(changed)
        elif not connection.broken:
            connection.untold.append(changed)

    def _tell_all(self, connection: _Connection) -> None:
        untold, connection.untold = connection.untold, []
        for changed in untold:
            self._run(changed)

    def request(self, command: NodeCommand, answered: Answered, changed: Callable[[], None]) -> None:
        """Execute a command; it is answered exactly once, within a sixth of the session timeout."""
        request, connection = _Request(command, answered, changed), self._connection
        if connection is None:
            self._world.after(0.0, lambda: self._answer(request, None, NotSent("There is no connection.")))
            return
        connection.requests.append(request)
        late = DeadlineExceeded("No answer in time.")
        bound = self._timeout / CONFIRMATIONS_PER_SESSION
        request.deadline = self._world.after(bound, lambda: self._answer(request, None, late))
        there = 0.0
        if self.slow:
            there, request.back = slowly(self._slow_dice, bound)
        # As with TCP, nothing overtakes what was sent before.
        connection.arrived = max(connection.arrived, self._world.now + LATENCY + self.link.delay + there)
        self._world.at(connection.arrived, lambda: self._arrive(connection, request))

    def _arrive(self, connection: _Connection, request: _Request) -> None:
        if self._arrives(connection):
            connection.server.hear(connection.session)
            connection.waiting.append(request)
            self._serve(connection)

    def _serve(self, connection: _Connection) -> None:
        """Let the quorum decide changes, and answer reads once no change of the same client is undecided."""
        while connection.waiting and not connection.broken:
            command = connection.waiting[0].command
            if isinstance(command, ReadNode) and connection.undecided:
                return
            request = connection.waiting.popleft()
            if isinstance(command, ReadNode):
                self._read(connection, request, command)
            else:
                connection.undecided += 1
                decide = partial(self._decide, connection, request)
                connection.server.to_quorum.send(partial(self._ensemble.arrive, decide))

    def _read(self, connection: _Connection, request: _Request, command: ReadNode) -> None:
        if command.watch and request.changed not in connection.watches:
            connection.watches.append(request.changed)
        try:
            node = self._ensemble.read(command, connection.server, _Watch(self, connection, request.changed))
        except StoreError as refused:
            self._send_back(connection, request, None, refused)
        else:
            self._send_back(connection, request, node, None)

    def _decide(self, connection: _Connection, request: _Request) -> None:
        if connection.session.connection is not connection:
            return  # the session has moved to another server, or all of them were restarted
        error: StoreError | None = None
        try:
            self._ensemble.decide(connection.session, request.command)
        except StoreError as refused:
            error = refused
        connection.server.from_quorum.send(lambda: self._decided(connection, request, error))

    def _decided(self, connection: _Connection, request: _Request, error: StoreError | None) -> None:
        connection.server.catch_up()  # a server answers once it has applied its client's own changes
        connection.undecided -= 1
        self._send_back(connection, request, None, error)
        self._serve(connection)

    def _send_back(
        self, connection: _Connection, request: _Request, value: Node | None, error: StoreError | None
    ) -> None:
        back = self._world.now + LATENCY + self.link.delay + request.back
        connection.returned = max(connection.returned, back)
        self._world.at(connection.returned, lambda: self._return(connection, request, value, error))

    def _return(self, connection: _Connection, request: _Request, value: Node | None, error: StoreError | None) -> None:
        if self._returns(connection):
            self._tell_all(connection)
            connection.heard_at = self._world.now
            self._answer(request, value, error)

    def _answer(self, request: _Request, value: Node | None, error: StoreError | None) -> None:
        if not request.over:
            request.over = True
            if request.deadline is not None:
                request.deadline.cancel()
            if self._connection is not None and request in self._connection.requests:
                self._connection.requests.remove(request)
            self._run(lambda: request.answered(value, error))
