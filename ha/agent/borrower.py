"""The borrower: a contender's end of the session socket. It connects, again and again, and passes on what is lent."""

import asyncio
import random
from contextlib import suppress

import msgspec

from ha.agent.session_socket import MOST_LINE_BYTES, Hello, Word, is_own, line, path_in
from ha.config.snapshot_dir import SnapshotDirectory, open_directory
from ha.config.stores import Stores
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime

AGAIN_S = (0.5, 1.5)
"""Seconds between two tries to connect: this much at least and at most, so that not all come at once."""


class Borrower:
    """Borrows the session of the host for one contender."""

    def __init__(self, runtime: Runtime, contender: Contender, place: SnapshotDirectory) -> None:
        """Start in the background.

        Args:
            runtime: of the contender.
            contender: told of what is lent.
            place: the directory that holds the socket.
        """
        self._runtime = runtime
        self._contender = contender
        self._place = place
        self._ending = asyncio.Event()
        self._ended = runtime.run(self._borrow())

    def close(self) -> None:
        """Borrow no more."""
        self._runtime.post(self._ending.set)
        with suppress(TimeoutError):
            self._ended.result(AGAIN_S[1])

    async def _borrow(self) -> None:
        while not self._ending.is_set():
            with suppress(OSError):
                await self._connect()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), random.uniform(*AGAIN_S))  # noqa: S311  # not secret

    async def _connect(self) -> None:
        directory = open_directory(self._place)
        loop = asyncio.get_running_loop()
        hello = Hello(self._contender.name, self._place.boot)
        transport, way = await loop.create_unix_connection(lambda: _Way(self._contender, hello), path_in(directory))
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait((ending, way.over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            transport.abort()


def borrower_of(stores: Stores, runtime: Runtime, contender: Contender) -> Borrower | None:
    """Return a started borrower, if the settings ask for one and this host has a place for it."""
    if not stores.settings.borrows_session or stores.snapshots is None:
        return None
    return Borrower(runtime, contender, stores.snapshots)


class _Way(asyncio.Protocol):
    """The connection to the lender."""

    def __init__(self, contender: Contender, hello: Hello) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._contender = contender
        self._hello = hello
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who this is, unless a stranger listens."""
        assert isinstance(transport, asyncio.Transport), "a stream is read and written"
        self._transport = transport
        if is_own(transport.get_extra_info("socket")):
            transport.write(line(self._hello))
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass on what is lent."""
        *lines, self._received = (self._received + data).split(b"\n")
        try:
            for each in lines:
                self._contender.lent(msgspec.json.decode(each, type=Word).lent)
            damaged = len(self._received) > MOST_LINE_BYTES
        except msgspec.MsgspecError:
            damaged = True
        if damaged and self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The lender has ended, or is parted from this process."""
        del exc
        self._contender.lent(None)
        if not self.over.done():
            self.over.set_result(None)
