"""Mirror: the copy of a record in ZooKeeper, which the leader keeps right. No I/O.

The mirror is level-triggered: it reads the node with a watch, compares, and makes one change at a time. While the node
of an earlier leader's session lives, the mirror writes into that node, and creates its own as soon as the other is
gone. So readers learn of a new leader at once, and each session deletes only its own node. A leader that gives its
lease back deletes its node, which tells the standbys; if the node belongs to another session, it writes the same
content again.
"""

from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from leader.timing import NEVER, PAST
from store.errors import NotFound
from store.outcome import Outcome

FIRST_PAUSE = 0.05  # seconds before the repair that follows one which was undone; doubles with every further one
LONGEST_PAUSE = 5.0  # seconds: a stranger that keeps overwriting the node costs the ensemble one write in that time
QUIET = 30.0  # seconds without a repair after which the pause is short again


class Mirror:
    """One node as the leader wants it."""

    def __init__(self, path: str, *, observe: bool) -> None:
        """Want nothing yet; ``observe`` says whether to read and watch the node even so."""
        self.path = path
        self._observe = observe
        self.repairs = 0
        self.touched = False  # when last read: whether others have written or deleted the node since we wrote it
        self._version = -1
        self._session: int | None = None
        self._wanted: bytes | None = None
        self._sent: bytes | None = None
        self._ours: bytes | None = None
        self._farewell: NodeCommand | None = None  # the last change, which tells watchers that this leader has ended
        self._node: Node | None = None
        self._read = False
        self._synced = False
        self._under_way = False
        self._overtaken = False
        """Whether the watch fired while a command was under way: their threads differ, so either may come first."""
        self._repaired_at = PAST
        self._fresh = False
        self._pause = 0.0
        self._not_before = PAST

    @property
    def published(self) -> bool:
        """Whether the node was last seen as it is wanted."""
        return self._read and self._wanted is not None and self._node is not None and self._node.data == self._wanted

    @property
    def wanting(self) -> bool:
        """Whether the node is to hold something."""
        return self._wanted is not None

    @property
    def seen(self) -> bytes | None:
        """The content of the node when it was last read; None if there was none, or it was never read."""
        return self._node.data if self._node is not None else None

    def wake_at(self, now: float) -> float:
        """Boot-clock seconds of the next repair that is postponed."""
        return self._not_before if self._not_before > now else NEVER

    def want(self, data: bytes | None, now: float) -> NodeCommand | None:
        """Want this data in the node; None deletes the node if it is ours."""
        self._fresh = data is not None and data != self._wanted
        if self._fresh:
            self._not_before = PAST
        self._wanted, self._farewell = data, None
        if data is None:
            self._synced = False
        return self.tick(now)

    def connected(self, session: int, now: float) -> NodeCommand | None:
        """ZooKeeper is connected."""
        self._session = session
        self._read = self._synced = False
        self._overtaken = self._under_way
        return self.tick(now)

    def disconnected(self) -> None:
        """ZooKeeper is not connected."""
        self._session = None

    def changed(self, now: float) -> NodeCommand | None:
        """The watch fired."""
        self._read = self._synced = False
        self._overtaken = self._under_way
        return self.tick(now)

    def tick(self, now: float) -> NodeCommand | None:
        """Time has passed; returns what to ask ZooKeeper."""
        if self._session is None or self._under_way or now < self._not_before:
            return None
        command = self._next(now)
        self._under_way = command is not None
        return command

    def answered(self, command: NodeCommand, outcome: Outcome[Node | None], now: float) -> NodeCommand | None:
        """ZooKeeper has answered; returns what to ask next."""
        self._under_way = False
        overtaken, self._overtaken = self._overtaken, False
        if isinstance(command, ReadNode):
            answered = outcome.done or isinstance(outcome.error, NotFound)
            self._read = answered and not overtaken
            self._node = outcome.value if outcome.done else None
            if self._node is not None and self._node.data == self._sent:
                self._ours = self._sent
            self.touched = self._touched()
            if not answered:
                self._not_before = now + FIRST_PAUSE
        elif isinstance(command, Sync):
            self._read, self._synced = False, outcome.done
            if not outcome.done:
                self._not_before = now + FIRST_PAUSE
        else:
            # After a change, done or not, the node is read: that also sets the watch again.
            self._read = self._synced = False
            if not outcome.done:
                self._not_before = now + FIRST_PAUSE
            elif isinstance(command, DeleteNode) or command == self._farewell:
                self._sent = self._ours = None
        return self.tick(now)

    def _touched(self) -> bool:
        """Equal data proves nothing: an operator writes the same data once more to have the leader look at HDFS."""
        if not self._read or not self.wanting or self._sent is None:
            return False
        node, expected = self._node, self._version
        self._version = node.version if node is not None else -1
        return node is None or node.version != expected or node.data not in (self._sent, self._ours)

    def _next(self, now: float) -> NodeCommand | None:
        if self._wanted is None and self._sent is None and not self._observe:
            return None
        if self._wanted is None and self._sent is not None and not self._synced:
            # A successor's new node can have the version that ours had, so ours is read again before it is deleted.
            return Sync(self.path)
        if not self._read:
            return ReadNode(self.path, watch=True)
        node = self._node
        if self._wanted is None:
            # Data in our node that is neither our last write nor the one before is the next leader's.
            return self._say_farewell(node) if node is not None and node.data in (self._sent, self._ours) else None
        if node is not None and node.data == self._wanted and node.owner:
            return None
        return self._repair(node, now)

    def _say_farewell(self, node: Node) -> NodeCommand:
        """Delete our own node; one of another session stays, but a standby that it was handed over to must look now."""
        own = node.owner == self._session
        self._farewell = DeleteNode(self.path, node.version) if own else WriteNode(self.path, node.data, node.version)
        return self._farewell

    def _repair(self, node: Node | None, now: float) -> NodeCommand | None:
        """Write what is wanted; pause only when somebody undoes it, never before new data."""
        assert self._wanted is not None, "there is data to write"
        if not self._fresh:
            if now - self._repaired_at > QUIET:
                self._pause = 0.0
            if now < self._repaired_at + self._pause:
                self._not_before = self._repaired_at + self._pause
                return None
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._repaired_at = now
            self.repairs += 1
        self._fresh = False
        self._sent = self._wanted
        self._version = node.version + 1 if node is not None else 0
        if node is None:
            return CreateNode(self.path, self._wanted)
        # A node without a session would outlive every leader, so it makes room for one of ours.
        return WriteNode(self.path, self._wanted, node.version) if node.owner else DeleteNode(self.path, node.version)
