"""Member node: the ephemeral node that the holder of a host's session makes for one other process of its host. No I/O.

The node is read once, with a watch: ZooKeeper sends the event of a watch before the answer to any ``sync`` that began
after the change. So while no event has come, a confirmation of the session is one of the node, too.
"""

from collections.abc import Callable

from leader.election.borrowed_session import Lent
from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, session_path
from leader.timing import PAST
from store.errors import AlreadyExists, NotFound
from store.outcome import Outcome


class MemberNode:
    """One member's node. At most one command is under way."""

    def __init__(self, data: bytes, new_token: Callable[[], str | None]) -> None:
        """``data`` is for people; ``new_token`` names a node of the present session, None if no name is settled."""
        self.over = False  # whether the member has left and its node is gone
        self._data = data
        self._new_token = new_token
        self._session: int | None = None
        self._token: str | None = None
        self._version = 0
        self._created = self._there = False
        self._under_way = False
        self._left = False
        self._promised_until = PAST

    def connected(self, session: int) -> None:
        """The holder is connected, in this session."""
        if session != self._session:
            self._session, self._token, self._created = session, None, False
            self._promised_until = PAST
            self.over = self._left  # its node was one of the session before

    def disconnected(self) -> None:
        """The holder is not connected: its watches are gone."""
        self._there = False

    def leave(self) -> None:
        """The member stops lending. Its node stays while the member, or what it has started, may believe."""
        self._left = True
        self.over = self._token is None

    def delete_at(self) -> float:
        """Boot-clock seconds from when on the node of a member that has left may be deleted."""
        return self._promised_until

    def changed(self, now: float) -> NodeCommand | None:
        """The node's watch fired."""
        self._there = False
        return self.tick(now)

    def tick(self, now: float) -> NodeCommand | None:
        """Return what to ask ZooKeeper now."""
        if self._under_way or self._session is None or self.over:
            return None
        if self._left:
            return self._end(now)
        if self._token is None:
            self._token, self._created, self._there = self._new_token(), False, False
        if self._token is None or self._there:
            return None
        path = session_path(self._token)
        return self._ask(ReadNode(path, watch=True) if self._created else CreateNode(path, self._data))

    def _end(self, now: float) -> NodeCommand | None:
        if self._token is None:
            self.over = True
        elif now >= self._promised_until:
            path = session_path(self._token)
            # A stranger may have written into it: the version is the one that was read last.
            return self._ask(DeleteNode(path, self._version) if self._there else ReadNode(path, watch=True))
        return None

    def answered(self, command: NodeCommand, outcome: Outcome[Node | None], now: float) -> NodeCommand | None:
        """ZooKeeper has answered; returns what to ask next."""
        # An answer to a session that is over changes nothing: the next token is made only after it.
        self._under_way = False
        missing = isinstance(outcome.error, NotFound)
        match command:
            case CreateNode() if outcome.done or isinstance(outcome.error, AlreadyExists):
                self._created = True
            case ReadNode() if outcome.done:
                node = outcome.result()
                self._there = node is not None and node.owner == self._session
                self._version = node.version if node is not None else 0
                if not self._there:
                    self._token = None  # it is somebody else's
            case ReadNode() if missing:
                self._token = None  # somebody has deleted it: its name does not come back
            case DeleteNode() if outcome.done or missing:
                self.over = True
            case DeleteNode():
                self._there = False  # it is read again after the next confirmation
                return None
            case _:
                return None  # it is tried again after the next confirmation
        return self.tick(now)

    def lend(self, until: float, started: float, timeout: float) -> Lent | None:
        """Return a confirmation of the session as one of this node; None if the node may not be there."""
        if not self._there or self._left or self._token is None:
            return None
        self._promised_until = max(self._promised_until, until)
        return Lent(self._token, max(0.0, until), started, timeout)

    def _ask(self, command: NodeCommand) -> NodeCommand:
        self._under_way = True
        return command
