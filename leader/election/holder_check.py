"""Holder check: before seizing a lease whose session node vanished, ask its holder whether it is alive. No I/O.

A session that is over has no node, but a stranger may also have deleted the node of a living one. A holder that is
silent counts as dead. One that answers gets a session timeout: once it notices, it renews its lease without that node.
If it cannot, its belief has run out by then: no later confirmation extended it.
"""

from leader.timing import NEVER, PAST, Timing


class HolderCheck:
    """The holder of a lease whose node is gone: whether it was asked, and what it answered."""

    def __init__(self, timing: Timing) -> None:
        self._grace = timing.session_timeout * (1 + timing.drift)
        self._token: str | None = None
        self._began = PAST
        self._asked = False
        self._lives: bool | None = None

    def begin(self, token: str, now: float) -> None:
        """The node of that token was seen to be gone; if that was seen before, nothing changes."""
        if token != self._token:
            self._token, self._began, self._asked, self._lives = token, now, False, None

    def ask(self) -> bool:
        """Whether to ask the process now; true once for each hearing."""
        first, self._asked = not self._asked, True
        return first

    def answer(self, token: str, *, lives: bool) -> None:
        """The process of that token has greeted, or no greeting came in time."""
        if token == self._token:
            self._lives = lives

    def ends(self) -> float:
        """Boot-clock seconds from which the lease may be seized."""
        if self._lives is None:
            return NEVER
        return self._began + self._grace if self._lives else self._began
