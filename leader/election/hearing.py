"""Hearing: before a lease is seized because the node of its session is gone, its holder's process is asked. No I/O.

A session that is over has no node, but neither has one whose node a stranger has deleted. The process itself tells the
two apart. One that is silent is taken at ZooKeeper's word. One that answers gets a session timeout: as soon as it
notices, it renews its lease without that node. If it cannot, its belief has run out by then, because no confirmation
that came after the node was gone has extended it.
"""

from leader.timing import NEVER, PAST, Timing


class Hearing:
    """The knowledge about the holder of a lease whose node is gone."""

    def __init__(self, timing: Timing) -> None:
        """Nobody is heard yet."""
        self._grace = timing.session_timeout * (1 + timing.drift)
        self._token: str | None = None
        self._began = PAST
        self._asked = False
        self._lives: bool | None = None

    def begin(self, token: str, now: float) -> None:
        """The node of that token was seen to be gone; nothing begins anew if that was seen before."""
        if token != self._token:
            self._token, self._began, self._asked, self._lives = token, now, False, None

    def ask(self) -> bool:
        """Whether to ask the process now; true once for each hearing."""
        first, self._asked = not self._asked, True
        return first

    def answer(self, token: str, *, lives: bool) -> None:
        """The process of that token has greeted, or nobody has in time."""
        if token == self._token:
            self._lives = lives

    def ends(self) -> float:
        """Boot-clock seconds from which the lease may be seized."""
        if self._lives is None:
            return NEVER
        return self._began + self._grace if self._lives else self._began
