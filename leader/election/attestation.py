"""Attestation: proof of life by an ephemeral ZooKeeper node that is confirmed again and again. No I/O.

One session, one node and one confirmation serve all jobs that the process contends for. A confirmation is two ``sync``,
one after the other, and a read of the own node. It proves that the session lives, but not for how long: the server that
answers reports its clients to the quorum only every half tick, when asked. But the answer to the first ``sync`` comes
after everything that the quorum had asked until then, and the second ``sync`` follows the server's answers
(docs/decisions/0008). So a confirmation proves the one before it: the session lives at least for its timeout from the
start of the newest confirmation that is half a tick older than the last. This holds within an unbroken row of
confirmations; after a silence a new row has to settle first (docs/decisions/0007).
"""

import re
from collections import deque
from collections.abc import Callable, Generator

from msgspec.structs import replace

from leader.layout.lease import Attestation
from leader.layout.znodes import (
    SESSIONS,
    CreateNode,
    Node,
    NodeCommand,
    ReadNode,
    Sync,
    WriteNode,
    incarnation_of,
    make_token,
    names_session,
    session_path,
)
from leader.timing import CONFIRMATIONS_PER_SESSION, HEARD_AFTER, NEVER, PAST, SESSION_SHARE, SETTLED_AFTER
from store.errors import AlreadyExists, NotFound, PermissionDenied
from store.outcome import Outcome

# An incarnation becomes a part of every lease's name, so nothing else may pass for one.
_INCARNATION = re.compile(rb"[0-9a-f]{1,16}")

LONGEST_REFUSED_S = 30.0  # pause before asking again what access lists did not allow: only a person changes those

Answer = Outcome[Node | None]


class SessionAttestor:
    """Keeps the node that attests this process's leases, and says until when its session surely lives."""

    def __init__(
        self,
        *,
        drift: float,  # greatest relative error of any clock's rate
        reserve: float,  # seconds that a leader needs to have HDFS alone carry its lease
        # Gives a random word of 8 hexadecimal digits; used if ZooKeeper holds none yet.
        new_incarnation: Callable[[], str],
        data: bytes,  # content of the node, for people
        every: float = 1 / CONFIRMATIONS_PER_SESSION,  # share of the session timeout from one confirmation to the next
    ) -> None:
        self.attestation = Attestation()
        self.confirmed_at = PAST  # boot-clock seconds when the newest confirmation of this session began
        self._every = every
        self._drift = drift
        self._reserve = reserve
        self._new_incarnation = new_incarnation
        self._data = data
        self._session: int | None = None
        self._timeout = NEVER
        self._incarnation: str | None = None
        self._created = False
        self._again = self._numbers = 0
        self._sync_started = 0.0
        self._synced_once = False
        self._confirmations: deque[float] = deque()
        self._row_began = 0.0
        self._refused = 0
        self._under_way: NodeCommand | None = None  # at most one command
        self._asked_in: int | None = None
        self._next_due = NEVER
        self._answers_until = PAST

    @property
    def watched(self) -> str | None:
        """Path of the own node: if it changes, call :meth:`confirm_now`."""
        return session_path(self.attestation.token) if self.attestation.token else None

    def wake_at(self) -> float:
        """Boot-clock seconds of the next confirmation, unless one is under way, or of the end of what is usable."""
        known = self.attestation
        ends = NEVER
        if known.usable:
            ends = known.until - self._reserve
        elif known.answers:
            ends = self._answers_until
        return ends if self._under_way is not None else min(ends, self._next_due)

    def connected(self, session: int, timeout: float, now: float) -> NodeCommand | None:
        """ZooKeeper is connected, in a session with this id and this negotiated timeout in seconds."""
        if session != self._session:
            self._session, self._created, self._incarnation, self._refused = session, False, None, 0
            self._confirmations.clear()
            self.attestation, self.confirmed_at = Attestation(), PAST
        self._timeout = timeout
        self._next_due = now
        return self.tick(now)

    def disconnected(self) -> None:
        """ZooKeeper is not connected. Confirmations stay valid until ``attestation.until``."""
        self._next_due = NEVER
        self._suspend()

    def confirm_now(self, now: float) -> NodeCommand | None:
        """The own node may have changed: confirm now."""
        if self._next_due != NEVER:
            self._next_due = now
        return self.tick(now)

    def tick(self, now: float) -> NodeCommand | None:
        """Time has passed; returns what to ask ZooKeeper."""
        # Checked now, and not only once the next confirmation has failed: after a slow one there is no time left.
        known = self.attestation
        usable = known.usable and now < known.until - self._reserve
        self.attestation = replace(known, usable=usable, answers=known.answers and now < self._answers_until)
        if self._under_way is not None or now < self._next_due or self._session is None:
            return None
        self._next_due = now + self._timeout * self._every
        if self._incarnation is None:
            return self._ask(ReadNode(SESSIONS))
        if not self._created:
            return self._ask(CreateNode(self._path(), self._data))
        self._sync_started, self._synced_once = now, False
        return self._ask(Sync(SESSIONS))

    def answered(self, command: NodeCommand, outcome: Answer, now: float) -> NodeCommand | None:
        """ZooKeeper has answered; returns what to ask next."""
        self._under_way = None
        if self._asked_in != self._session:
            return self.tick(now)  # an answer to a session that is over says nothing about the present one
        self._refused = self._refused + 1 if isinstance(outcome.error, PermissionDenied) else 0
        match command:
            case _ if self._refused:
                self._not_allowed(now)
            case ReadNode(path) if path == SESSIONS:
                return self._incarnation_read(outcome, now)
            case CreateNode(path) | WriteNode(path) if path == SESSIONS:
                return self.confirm_now(now) if outcome.done or isinstance(outcome.error, AlreadyExists) else None
            case CreateNode():
                self._created = outcome.done or isinstance(outcome.error, AlreadyExists)
                return self.confirm_now(now) if self._created else None
            case Sync() if outcome.done:
                following = ReadNode(self._path(), watch=True) if self._synced_once else Sync(SESSIONS)
                self._synced_once = True
                return self._ask(following)
            case ReadNode() if outcome.done:
                self._confirmed(outcome.result(), now)
            case ReadNode() if isinstance(outcome.error, NotFound):
                # Our session lives and its node is gone: somebody deleted the node, or the ensemble was wiped.
                self._replace_node()
                self._incarnation = None
            case _:
                self._suspend()
        return None

    def _not_allowed(self, now: float) -> None:
        """An access list is in the way: ask again, but ever more seldom."""
        self._suspend()
        pause = self._timeout / CONFIRMATIONS_PER_SESSION * 2.0 ** min(self._refused - 1, 10)
        if self._next_due != NEVER:
            self._next_due = now + min(LONGEST_REFUSED_S, pause)

    def _incarnation_read(self, outcome: Answer, now: float) -> NodeCommand | None:
        if isinstance(outcome.error, NotFound):
            return self._ask(CreateNode(SESSIONS, self._new_incarnation().encode(), ephemeral=False))
        if not outcome.done or (node := outcome.result()) is None:
            return None
        if not _INCARNATION.fullmatch(node.data):
            # Made by hand, or damaged. ZooKeeper then knows nothing of older tokens: no owner counts as dead.
            return self._ask(WriteNode(SESSIONS, self._new_incarnation().encode(), node.version))
        self._incarnation = node.data.decode()
        return self.confirm_now(now)

    def _confirmed(self, node: Node | None, now: float) -> None:
        if node is None or node.owner != self._session or self._incarnation is None:
            self._replace_node()  # it is somebody else's
            return
        self.confirmed_at = self._sync_started
        proven = self._proven(self._sync_started)
        # The answer may come after the connection was lost: it is true, but no confirmation would follow it. And a
        # belief that is nearly over cannot be relied on.
        connected = self._next_due != NEVER
        usable = connected and now < proven - self._reserve
        self._answers_until = answers_until(self._sync_started, self._timeout, self._drift, self._reserve)
        answers = connected and now < self._answers_until
        self.attestation = Attestation(self._token(), max(self.attestation.until, proven), usable, answers)

    def _proven(self, started: float) -> float:
        """Until when the session surely lives, after a confirmation that was started at that time has succeeded."""
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
        return row[0] + self._timeout * (1 - self._drift) if settled else PAST

    def _suspend(self) -> None:
        """Keep what was confirmed, but let no new lease rely on it for now."""
        self.attestation = replace(self.attestation, usable=False, answers=False)

    def _replace_node(self) -> None:
        self._suspend()
        self._created = False
        self._numbers += 1
        self._again = self._numbers

    def another_token(self) -> str | None:
        """Name another node of this session, never made before; None while the session has no node."""
        if self._session is None or self._incarnation is None:
            return None
        self._numbers += 1
        return make_token(self._incarnation, self._session, self._numbers)

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


def answers_until(started: float, timeout: float, drift: float, reserve: float) -> float:
    """Until when ZooKeeper is taken to answer, after a confirmation that was started at that time has succeeded."""
    return started + timeout * SESSION_SHARE * (1 - drift) - reserve


def check_attestation(token: str) -> Generator[NodeCommand, Answer, bool | None]:
    """Ask whether the node of a token is there; yields commands, is sent their outcomes, and returns the answer."""
    # Only a node of the token's own session counts. None: ZooKeeper does not answer, or was wiped since.
    synced = yield Sync(SESSIONS)
    if not synced.done:
        return None
    root = yield ReadNode(SESSIONS)
    if not root.done or (node := root.result()) is None or node.data != incarnation_of(token).encode():
        return None
    found = yield ReadNode(session_path(token), watch=True)
    if found.done and (own := found.result()) is not None:
        # The name is there, and may be a stranger's: then the node that attested was deleted before.
        return names_session(token, own.owner)
    return False if isinstance(found.error, NotFound) else None
