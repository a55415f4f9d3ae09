"""The process's ZooKeeper session as an attestation: a node of its own, confirmed again and again. No I/O.

One session, one node and one confirmation serve all jobs that the process contends for.

A confirmation is two ``sync``, one after the other, and a read of the own node. It proves that the session lives, and
not for how long, because the server that answers tells the quorum of its clients only every half tick, when asked. But
the answer to the first ``sync`` comes after all that the quorum had asked until then, and the second goes after what
the server said to that (docs/decisions/0008). So what a confirmation proves is the one before it: the session lives at
least for its timeout from the start of the newest confirmation that is half a tick older than the last. This holds
within an unbroken row of confirmations; after a silence a new row has to settle first (docs/decisions/0007).
"""

import re
from collections import deque
from collections.abc import Callable, Generator

from msgspec.structs import replace

from leader.lease import Attestation
from leader.nodes import (
    SESSIONS,
    CreateNode,
    Node,
    NodeCommand,
    ReadNode,
    Sync,
    WriteNode,
    incarnation_of,
    make_token,
    session_path,
)
from leader.timing import CONFIRMATIONS_PER_SESSION, HEARD_AFTER, SESSION_SHARE, SETTLED_AFTER
from store.errors import AlreadyExists, NotFound
from store.outcome import Outcome

NEVER = float("inf")
NEVER_SAID = float("-inf")

_INCARNATION = re.compile(rb"[0-9a-f]{1,16}")
"""It becomes a part of every lease's name, so nothing else may be taken for one."""

Answer = Outcome[Node | None]


class SessionKeeper:
    """Keeps the node that attests this process's leases, and says until when it surely lives.

    One command is under way at a time. ``attestation`` is what the elections need to know.
    """

    def __init__(self, *, drift: float, reserve: float, new_incarnation: Callable[[], str], about: bytes) -> None:
        """Start without a connection.

        Args:
            drift: greatest relative error of any clock's rate.
            reserve: seconds that a leader needs to have HDFS alone carry its lease.
            new_incarnation: gives a random word of 8 hexadecimal digits, for the first process that ever comes here.
            about: content of the node, for people.
        """
        self.attestation = Attestation()
        self._drift = drift
        self._reserve = reserve
        self._new_incarnation = new_incarnation
        self._about = about
        self._session: int | None = None
        self._timeout = NEVER
        self._incarnation: str | None = None
        self._created = False
        self._again = 0
        self._sync_started = 0.0
        self._synced_once = False
        self._confirmations: deque[float] = deque()
        self._row_began = 0.0
        self._under_way: NodeCommand | None = None
        self._asked_in: int | None = None
        self._next_due = NEVER
        self._answers_until = NEVER_SAID

    @property
    def watched(self) -> str | None:
        """Path of the own node: if it changes, call :meth:`doubt`."""
        return session_path(self.attestation.token) if self.attestation.token else None

    def wake_at(self) -> float:
        """Boot-clock seconds of the next confirmation, unless an answer is awaited, or of the end of what is usable."""
        known = self.attestation
        ends = NEVER
        if known.usable:
            ends = known.until - self._reserve
        elif known.answers:
            ends = self._answers_until
        return ends if self._under_way is not None else min(ends, self._next_due)

    def connected(self, session: int, timeout: float, now: float) -> NodeCommand | None:
        """A connection is there, of a session with this id and this negotiated timeout in seconds."""
        if session != self._session:
            self._session, self._created, self._incarnation = session, False, None
            self._confirmations.clear()
            self.attestation = Attestation()
        self._timeout = timeout
        self._next_due = now
        return self.tick(now)

    def disconnected(self) -> None:
        """There is no connection. What was confirmed stays confirmed; that is what ``until`` means."""
        self._next_due = NEVER
        self._silent()

    def doubt(self, now: float) -> NodeCommand | None:
        """Somebody touched the own node: confirm now."""
        if self._next_due != NEVER:
            self._next_due = now
        return self.tick(now)

    def tick(self, now: float) -> NodeCommand | None:
        """Time has passed; returns what to ask ZooKeeper."""
        # Now, and not when the next confirmation has failed: if it is slow there is no time left then.
        known = self.attestation
        usable = known.usable and now < known.until - self._reserve
        self.attestation = replace(known, usable=usable, answers=known.answers and now < self._answers_until)
        if self._under_way is not None or now < self._next_due or self._session is None:
            return None
        self._next_due = now + self._timeout / CONFIRMATIONS_PER_SESSION
        if self._incarnation is None:
            return self._ask(ReadNode(SESSIONS))
        if not self._created:
            return self._ask(CreateNode(self._path(), self._about))
        self._sync_started, self._synced_once = now, False
        return self._ask(Sync(SESSIONS))

    def answered(self, command: NodeCommand, outcome: Answer, now: float) -> NodeCommand | None:
        """ZooKeeper has answered; returns what to ask next."""
        self._under_way = None
        if self._asked_in != self._session:
            return self.tick(now)  # an answer to a session that is over says nothing about the present one
        match command:
            case ReadNode(path) if path == SESSIONS:
                return self._incarnation_read(outcome, now)
            case CreateNode(path) | WriteNode(path) if path == SESSIONS:
                return self.doubt(now) if outcome.done or isinstance(outcome.error, AlreadyExists) else None
            case CreateNode():
                self._created = outcome.done or isinstance(outcome.error, AlreadyExists)
                return self.doubt(now) if self._created else None
            case Sync() if outcome.done:
                following = ReadNode(self._path(), watch=True) if self._synced_once else Sync(SESSIONS)
                self._synced_once = True
                return self._ask(following)
            case ReadNode() if outcome.done:
                self._confirmed(outcome.result(), now)
            case ReadNode() if isinstance(outcome.error, NotFound):
                # Our session lives, and yet its node is gone: somebody deleted it, or the ensemble was wiped.
                self._made_again()
                self._incarnation = None
            case _:
                self._silent()
        return None

    def _incarnation_read(self, outcome: Answer, now: float) -> NodeCommand | None:
        if isinstance(outcome.error, NotFound):
            return self._ask(CreateNode(SESSIONS, self._new_incarnation().encode(), ephemeral=False))
        if not outcome.done or (node := outcome.result()) is None:
            return None
        if not _INCARNATION.fullmatch(node.data):
            # Made by hand, or damaged. Of tokens made before, ZooKeeper can say nothing then: nobody is taken for dead.
            return self._ask(WriteNode(SESSIONS, self._new_incarnation().encode(), node.version))
        self._incarnation = node.data.decode()
        return self.doubt(now)

    def _confirmed(self, node: Node | None, now: float) -> None:
        if node is None or node.owner != self._session or self._incarnation is None:
            self._made_again()  # it is somebody else's
            return
        proven = self._proven(self._sync_started)
        # The answer may come after the connection was lost: true, but no confirmation would follow it. And what is
        # nearly over is no ground to stand on.
        connected = self._next_due != NEVER
        usable = connected and now < proven - self._reserve
        self._answers_until = self._sync_started + self._timeout * SESSION_SHARE * (1 - self._drift) - self._reserve
        answers = connected and now < self._answers_until
        self.attestation = Attestation(self._token(), max(self.attestation.until, proven), usable, answers)

    def _proven(self, started: float) -> float:
        """Until when the session surely lives, now that a confirmation has succeeded that was started then."""
        row = self._confirmations
        if row and started - row[-1] > self._timeout * SETTLED_AFTER:
            row.clear()
        if not row:
            self._row_began = started
        row.append(started)
        heard_by = started - self._timeout * HEARD_AFTER * (1 + self._drift)
        while len(row) > 1 and row[1] <= heard_by:
            row.popleft()
        settled = self._row_began <= started - self._timeout * SETTLED_AFTER
        return row[0] + self._timeout * (1 - self._drift) if settled else NEVER_SAID

    def _silent(self) -> None:
        """What was confirmed stays confirmed; nothing more is, for now."""
        self.attestation = replace(self.attestation, usable=False, answers=False)

    def _made_again(self) -> None:
        self._silent()
        self._created = False
        self._again += 1

    def _token(self) -> str:
        assert self._incarnation is not None, "the incarnation is read before anything is made"
        assert self._session is not None, "a session comes before its node"
        return make_token(self._incarnation, self._session, self._again)

    def _path(self) -> str:
        return session_path(self._token())

    def _ask(self, command: NodeCommand) -> NodeCommand:
        self._under_way = command
        self._asked_in = self._session
        return command


def check_attestation(token: str) -> Generator[NodeCommand, Answer, bool | None]:
    """Ask whether the node of a token is there: yields commands, is sent their outcomes, returns the answer.

    None means that ZooKeeper cannot say: it does not answer, or it was wiped since the token was made.
    """
    synced = yield Sync(SESSIONS)
    if not synced.done:
        return None
    root = yield ReadNode(SESSIONS)
    if not root.done or (node := root.result()) is None or node.data != incarnation_of(token).encode():
        return None
    found = yield ReadNode(session_path(token), watch=True)
    if found.done:
        return True
    return False if isinstance(found.error, NotFound) else None
