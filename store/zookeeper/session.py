"""SessionClock: is there a connection, and can the session still be alive? A small state machine without threads."""

from enum import Enum

import msgspec


class Connection(Enum):
    """The state of the connection and the session."""

    CONNECTED = "connected"
    # The server is cut off from its ensemble: it answers reads, from the past, and takes no writes.
    READ_ONLY = "read-only"
    SUSPENDED = "suspended"  # there was a connection, and the session may still be alive
    LOST = "lost"  # the session is over, as ZooKeeper or our own clock says, or there never was one


class Session(msgspec.Struct, frozen=True):
    """One session with ZooKeeper."""

    id: int  # 64 bits, signed, as in `Stat.ephemeral_owner`
    timeout: float  # seconds that client and server agreed on

    @property
    def hex(self) -> str:
        """The id as ZooKeeper's own logs write it."""
        return f"0x{self.id & (2**64 - 1):x}"


class SessionClock:
    """The state of connection and session as far as this client knows. Every method returns the changes, in order.

    Kazoo reports a lost session only after it has reconnected, which can be hours later. So this clock counts the
    negotiated time-out itself, from the moment in which the connection broke. The server counts from when it last heard
    of us and gives all sessions a new time-out when its leader changes, so it may still know a session that is LOST
    here: the next CONNECTED can come with the same id.
    """

    def __init__(self) -> None:
        self.state = Connection.LOST
        self.session: Session | None = None
        self.lost_at: float | None = None  # boot-clock seconds of the session's end without a connection

    def connected(self, session: Session) -> list[Connection]:
        """There is a connection to a server that takes writes."""
        changes = []
        if self.session is not None and self.session.id != session.id:
            changes += self._become(Connection.LOST)
        self.session = session
        self.lost_at = None
        return changes + self._become(Connection.CONNECTED)

    def read_only(self) -> list[Connection]:
        """There is a connection to a read-only server, which knows nothing about our session: the clock goes on."""
        return self._become(Connection.READ_ONLY)

    def suspended(self, at: float) -> list[Connection]:
        """The connection broke at a boot-clock time."""
        if self.session is None:
            return self._become(Connection.LOST)
        if self.lost_at is None:
            self.lost_at = at + self.session.timeout
        return self._become(Connection.SUSPENDED)

    def lost(self) -> list[Connection]:
        """The session is over, says ZooKeeper, or there will never be one again."""
        self.session = self.lost_at = None
        return self._become(Connection.LOST)

    def tick(self, at: float) -> list[Connection]:
        """It is this boot-clock time."""
        if self.lost_at is None or at < self.lost_at:
            return []
        reading = self.state is Connection.READ_ONLY
        return self.lost() + (self._become(Connection.READ_ONLY) if reading else [])

    def _become(self, state: Connection) -> list[Connection]:
        if state is self.state:
            return []
        self.state = state
        return [state]
