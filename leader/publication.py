"""The copy of a record in ZooKeeper, kept right by the leader. No I/O.

Level-triggered: it reads the node with a watch, compares with what it wants there, and makes one change at a time.
While a node of an earlier leader's session still lives it writes into that node, and makes its own as soon as the
other is gone: readers learn of a new leader at once, and nobody ever deletes what it does not own.
"""

from leader.nodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from store.errors import NotFound
from store.outcome import Outcome

NEVER = float("inf")

FIRST_PAUSE = 0.05
"""Seconds before the first repair after one that was undone; doubles with every further one."""

LONGEST_PAUSE = 5.0
"""Seconds: somebody who overwrites the node again and again costs the ensemble one write in that time."""

QUIET = 30.0
"""Seconds without a repair after which the pause starts small again."""


class Publication:
    """One node as the leader wants it."""

    def __init__(self, path: str, *, observe: bool) -> None:
        """Want nothing yet; ``observe`` says whether the node is read and watched all the same."""
        self.path = path
        self._observe = observe
        self.repairs = 0
        self.touched = False
        """Whether the node, when it was last read, had been written or deleted by somebody else since we wrote it."""
        self._version = -1
        self._session: int | None = None
        self._wanted: bytes | None = None
        self._sent: bytes | None = None
        self._ours: bytes | None = None
        self._node: Node | None = None
        self._read = False
        self._synced = False
        self._under_way = False
        self._overtaken = False
        """Whether the watch went off while something was under way: of the server's two messages, either may come
        first, for a client hands on answers and events in different threads."""
        self._repaired_at = float("-inf")
        self._fresh = False
        self._pause = 0.0
        self._not_before = float("-inf")

    @property
    def published(self) -> bool:
        """Whether the node was last seen as it is wanted."""
        return self._read and self._wanted is not None and self._node is not None and self._node.data == self._wanted

    @property
    def wanting(self) -> bool:
        """Whether the node shall hold something."""
        return self._wanted is not None

    @property
    def seen(self) -> bytes | None:
        """What the node held when it was last read; None if there was none, or it was never read."""
        return self._node.data if self._node is not None else None

    def wake_at(self, now: float) -> float:
        """Boot-clock seconds of the next repair that waits."""
        return self._not_before if self._not_before > now else NEVER

    def want(self, data: bytes | None, now: float) -> NodeCommand | None:
        """The node shall hold this data; None: it shall go, if it is ours."""
        self._fresh = data is not None and data != self._wanted
        if self._fresh:
            self._not_before = float("-inf")
        self._wanted = data
        if data is None:
            self._synced = False
        return self.tick(now)

    def connected(self, session: int, now: float) -> NodeCommand | None:
        """A connection is there."""
        self._session = session
        self._read = self._synced = False
        self._overtaken = self._under_way
        return self.tick(now)

    def disconnected(self) -> None:
        """There is no connection."""
        self._session = None

    def changed(self, now: float) -> NodeCommand | None:
        """The watch went off."""
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
            # Whatever came of a change, the next step is to read, which also sets the watch again.
            self._read = self._synced = False
            if not outcome.done:
                self._not_before = now + FIRST_PAUSE
            elif isinstance(command, DeleteNode):
                self._sent = self._ours = None
        return self.tick(now)

    def _touched(self) -> bool:
        """Equal data is no proof: an operator writes what is there once more, to have the leader look at HDFS."""
        if not self._read or not self.wanting or self._sent is None:
            return False
        node, expected = self._node, self._version
        self._version = node.version if node is not None else -1
        return node is None or node.version != expected or node.data not in (self._sent, self._ours)

    def _next(self, now: float) -> NodeCommand | None:
        if self._wanted is None and self._sent is None and not self._observe:
            return None
        if self._wanted is None and self._sent is not None and not self._synced:
            # A successor's new node can have the version that ours had: before ours goes it is looked for anew.
            return Sync(self.path)
        if not self._read:
            return ReadNode(self.path, watch=True)
        node = self._node
        if self._wanted is None:
            # In a node of ours, what is neither our last word nor the one before is the next leader's.
            ours = node is not None and node.owner == self._session and node.data in (self._sent, self._ours)
            return DeleteNode(self.path, node.version) if node is not None and ours else None
        if node is not None and node.data == self._wanted and node.owner:
            return None
        return self._repair(node, now)

    def _repair(self, node: Node | None, now: float) -> NodeCommand | None:
        """Write what is wanted; pause only when somebody undoes it, never for something new to say."""
        assert self._wanted is not None, "only what is wanted is written"
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
        # A node of no session is nobody's, and would outlive every leader: it makes room for one of ours.
        return WriteNode(self.path, self._wanted, node.version) if node.owner else DeleteNode(self.path, node.version)
