"""Shares: who holds how many of a bounded number of streams; one host or token keeps no other out."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ha.listening.connections import group_of
from ha.listening.tokens import TOKEN


@dataclass(eq=False, slots=True)
class Share:
    """One stream."""

    who: str  # host and token that hold it
    over: bool = False  # whether it has to end, because somebody else needs its place


class Shares:
    """All streams of one kind, for one thread."""

    def __init__(self) -> None:
        self._held: dict[str, list[Share]] = {}  # of each host and token, the oldest first

    def take(self, request: Request, most: int) -> Share | None:
        """Take a share for a request; None if there is no room."""
        # If there are `most`, the host with the most loses its oldest, unless this host would then have as many.
        host = group_of(request.client.host) if request.client else ""
        made = Share(f"{host} {request.scope.get(TOKEN, '')}")
        if sum(map(len, self._held.values())) >= most:
            largest = max(self._held.values(), key=len, default=[])
            if len(largest) <= len(self._held.get(made.who, [])) + 1:
                return None
            largest[0].over = True
            self.leave(largest[0])
        self._held.setdefault(made.who, []).append(made)
        return made

    def leave(self, share: Share) -> None:
        """Give a share back; no error if it was given back before."""
        held = self._held.get(share.who, [])
        if share in held:
            held.remove(share)
            if not held:
                del self._held[share.who]


class EventStream(StreamingResponse):
    """Server-sent events; gives its share back when it ends, whether or not its client has read anything."""

    def __init__(self, content: AsyncIterator[bytes], shares: Shares, share: Share) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._shares, self._share = shares, share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._shares.leave(self._share)
