"""Simulated ZooKeeper: a quorum that decides, servers that follow it with a lag, sessions, one-shot watches.

A server reports its clients' sessions to the quorum only every half tick. So a session can end that much sooner than
its timeout after the last answer to its client. There is one way in each direction between a server and the quorum. As
with TCP, no message overtakes another, and none is lost unless the server gives its connection up. True time only.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from store.errors import AlreadyExists, Conflict, ConnectionLost, NotFound
from tests.system.simulation.world import Call, World

Told = Callable[[str, Node, str, int], None]
"""Is told of every change: the path, the node as it is now or was last, the operation, and whose session made it."""

ORDER = 0.0001
"""Seconds between two things that happen one after the other."""

STRANGER = -1
"""Owner of nodes whose session nobody here knows."""


@dataclass
class Session:
    """A client's session, as the quorum keeps it."""

    id: int
    timeout: float
    expiry: Call | None = None
    lost: Callable[[], None] | None = None
    connection: object = None
    """The newest one: what an older one still brings is refused."""


class Way:
    """One direction between a server and the quorum: what is sent arrives in order, later if the way is cut."""

    def __init__(self) -> None:
        self._cuts = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def open(self) -> bool:
        return self._cuts == 0

    def send(self, deliver: Callable[[], None]) -> None:
        self._waiting.append(deliver)
        self._deliver()

    def cut(self) -> None:
        self._cuts += 1

    def mend(self) -> None:
        """Undo one cut."""
        self._cuts -= 1
        self._deliver()

    def lose(self) -> None:
        """Give up the connection, and with it all messages under way."""
        self._waiting.clear()

    def _deliver(self) -> None:
        while self.open and self._waiting:
            self._waiting.popleft()()


class Server:
    """One server for clients: it answers reads itself, and the quorum decides everything else."""

    def __init__(self, ensemble: "Ensemble") -> None:
        self.up = True
        self.to_quorum = Way()
        self.from_quorum = Way()
        self.lag = 0.0
        """Seconds after which it has heard of a change."""
        self.nodes: dict[str, Node] = {}
        self.watches: dict[str, list[Callable[[], None]]] = {}
        self.broken: list[Callable[[], None]] = []
        """Called when its clients' connections break."""
        self._ensemble = ensemble
        self._behind: deque[tuple[str, Node | None]] = deque()
        self._heard: set[int] = set()

    @property
    def serves(self) -> bool:
        """Whether the server answers its clients at all."""
        return self.up and self._ensemble.up

    @property
    def in_quorum(self) -> bool:
        """Whether no way to or from the quorum is cut."""
        return self.to_quorum.open and self.from_quorum.open

    @property
    def leads_to_quorum(self) -> bool:
        """Whether the server can get a decision from the quorum."""
        return self.serves and self.in_quorum

    def hear(self, session: Session) -> None:
        """Note a client's heartbeat; the quorum learns of it with the next half tick."""
        if self._ensemble.tick == 0 and not self._ensemble.stalled:
            self._ensemble.touch(session)
            return
        if not self._heard:
            half = self._ensemble.tick / 2 or ORDER
            now = self._ensemble.world.now
            self._ensemble.world.at((now // half + 1) * half, self._ping)
        self._heard.add(session.id)

    def _ping(self) -> None:
        """Answer the quorum's ping with the clients that the server has heard."""
        if self._ensemble.stalled:
            # The backlog is worked off in the worst order: clients' requests, expiries, then servers' reports.
            self._ensemble.world.at(self._ensemble.stalled_until + 2 * ORDER, self._ping)
        elif self.serves:
            self.from_quorum.send(self._pinged)

    def _pinged(self) -> None:
        heard, self._heard = self._heard, set()
        self.to_quorum.send(lambda: self._tell(heard))

    def _tell(self, heard: set[int]) -> None:
        for session in filter(None, map(self._ensemble.sessions.get, sorted(heard))):
            self._ensemble.touch(session)

    def follow(self, path: str, node: Node | None) -> None:
        """Learn that the quorum has decided a change."""
        self._behind.append((path, node))
        if not self.from_quorum.open or not self.up:
            return
        if self.lag == 0:
            self.catch_up()
        else:
            self._ensemble.world.after(self.lag, self._catch_up_by_itself)

    def _catch_up_by_itself(self) -> None:
        if self.from_quorum.open and self.up and self._behind:
            self._apply(*self._behind.popleft())

    def catch_up(self) -> None:
        """Apply everything that was decided."""
        while self._behind:
            self._apply(*self._behind.popleft())

    def _apply(self, path: str, node: Node | None) -> None:
        if node is None:
            self.nodes.pop(path, None)
        else:
            self.nodes[path] = node
        for changed in self.watches.pop(path, []):
            changed()

    def drop_clients(self) -> None:
        """Break all connections."""
        self.watches.clear()
        broken, self.broken = self.broken, []
        for each in broken:
            each()

    def give_up(self) -> None:
        """Leave the quorum: unsent reports are lost, and so are the clients."""
        self.to_quorum.lose()
        self.from_quorum.lose()
        self._heard.clear()
        self.drop_clients()

    def stop(self) -> None:
        """Stop the server."""
        self.up = False
        self.give_up()

    def start(self) -> None:
        """Start the server, up to date."""
        self.up = True
        self._follow_again()

    def cut(self, *ways: Way) -> None:
        """Cut some of the server's ways."""
        for way in ways:
            way.cut()

    def mend(self, *ways: Way) -> None:
        """Undo a cut of these ways."""
        for way in ways:
            way.mend()
        self._follow_again()

    def _follow_again(self) -> None:
        if self.up and self.from_quorum.open:
            self.catch_up()


@dataclass
class Ensemble:
    """The quorum's data; a client reaches it through a server."""

    world: World
    tick: float = 0.0
    """Seconds; 0 tells the quorum of every client at once."""
    size: int = 1
    nodes: dict[str, Node] = field(default_factory=dict)
    sessions: dict[int, Session] = field(default_factory=dict)
    operations: int = 0
    up: bool = True
    told: Told | None = None
    stalled_until: float = 0.0
    _last_session: int = 0x1000

    def __post_init__(self) -> None:
        self.servers = [Server(self) for _ in range(self.size)]

    # --- sessions

    def open(self, timeout: float, lost: Callable[[], None] | None = None) -> Session:
        """Begin a session."""
        self._last_session += 1
        session = Session(self._last_session, timeout, lost=lost)
        self.sessions[session.id] = session
        self.touch(session)
        return session

    def touch(self, session: Session) -> None:
        """Note that the session's client was heard."""
        if session.expiry is not None:
            session.expiry.cancel()
        session.expiry = self.world.after(session.timeout, lambda: self.expire(session.id))

    def expire(self, session_id: int) -> None:
        """End a session: its nodes vanish at once. Time stands still for sessions while the ensemble is down."""
        session = self.sessions.get(session_id)
        if session is None:
            return
        if not self.up:
            session.expiry = self.world.after(session.timeout, lambda: self.expire(session_id))
            return
        if self.stalled:
            session.expiry = self.world.at(self.stalled_until + ORDER, lambda: self.expire(session_id))
            return
        self.close(session_id)
        if session.lost:
            session.lost()

    def close(self, session_id: int) -> None:
        """End a session without telling its client."""
        session = self.sessions.pop(session_id, None)
        if session is not None and session.expiry is not None:
            session.expiry.cancel()
        for path in [path for path, node in self.nodes.items() if node.owner == session_id]:
            self._decide(path, None, "delete", session_id)

    def stop(self) -> None:
        """Stop the quorum."""
        self.up = False
        for session in self.sessions.values():
            session.connection = None  # nothing that was under way is executed any more
        for server in self.servers:
            server.give_up()

    def restart(self) -> None:
        """Start again after an outage: every session gets its whole timeout anew."""
        self.up = True
        for session in self.sessions.values():
            self.touch(session)

    # --- trouble

    @property
    def stalled(self) -> bool:
        """Whether the quorum's leader is stalled now."""
        return self.world.now < self.stalled_until

    def stall(self, seconds: float) -> None:
        """Stall the quorum's leader for that long."""
        self.stalled_until = max(self.stalled_until, self.world.now + seconds)

    def arrive(self, execute: Callable[[], None]) -> None:
        """Take a request of the quorum."""
        if self.stalled:
            self.world.at(self.stalled_until, lambda: self.arrive(execute))
        else:
            execute()

    def wipe(self) -> None:
        """Wipe all data: sessions and nodes. Each node is told to go as if its own session had deleted it."""
        if self.told is not None:
            for path, node in self.nodes.items():
                self.told(path, node, "delete", node.owner)
        for session in list(self.sessions.values()):
            if session.expiry:
                session.expiry.cancel()
        self.sessions.clear()
        self.nodes.clear()
        for server in self.servers:
            server.nodes.clear()
            server._behind.clear()
            server.drop_clients()

    def tamper(self, path: str, data: bytes | None) -> None:
        """Overwrite a node, or delete it (None), as a stranger whose session is unknown here."""
        node = self.nodes.get(path, Node(b"", STRANGER, -1))
        if data is not None:
            self._decide(path, Node(data, node.owner, node.version + 1), "write", 0)
        elif path in self.nodes:
            self._decide(path, None, "delete", 0)

    # --- commands

    def read(self, command: ReadNode, server: Server, changed: Callable[[], None]) -> Node:
        """Read a node at the server that a client is connected to.

        Raises:
            NotFound: the node does not exist, as far as that server knows.
        """
        self.operations += 1
        if command.watch and changed not in (watches := server.watches.setdefault(command.path, [])):
            watches.append(changed)
        if command.path not in server.nodes:
            raise NotFound(command.path)
        return server.nodes[command.path]

    def decide(self, session: Session, command: NodeCommand) -> None:
        """Execute a command that the quorum has to decide.

        Raises:
            StoreError: it was refused.
        """
        self.operations += 1
        if session.id not in self.sessions:
            raise ConnectionLost("The session is over.")
        self._change(session, command)

    def _change(self, session: Session, command: NodeCommand) -> None:
        match command:
            case CreateNode(path, data, ephemeral):
                if path in self.nodes:
                    raise AlreadyExists(path)
                self._decide(path, Node(data, session.id if ephemeral else 0, 0), "create", session.id)
            case WriteNode(path, data, version):
                node = self._versioned(path, version)
                self._decide(path, Node(data, node.owner, version + 1), "write", session.id)
            case DeleteNode(path, version):
                self._versioned(path, version)
                self._decide(path, None, "delete", session.id)
            case Sync() | ReadNode():
                pass

    def _versioned(self, path: str, version: int) -> Node:
        if path not in self.nodes:
            raise NotFound(path)
        if self.nodes[path].version != version:
            raise Conflict(path)
        return self.nodes[path]

    def _decide(self, path: str, node: Node | None, operation: str, session: int) -> None:
        if self.told is not None:
            self.told(path, node or self.nodes[path], operation, session)
        if node is None:
            del self.nodes[path]
        else:
            self.nodes[path] = node
        for server in self.servers:
            server.follow(path, node)
