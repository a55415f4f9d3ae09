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
    """Borrows the session of the host for one contender, in the background."""

    def __init__(self, runtime: Runtime, contender: Contender, place: SnapshotDirectory) -> None:
        self._runtime, self._contender, self._place = runtime, contender, place
        self._transport: asyncio.WriteTransport | None = None
        self._ending = asyncio.Event()
        self._ended = runtime.run(self._borrow())

    def close(self) -> None:
        """Stop borrowing."""
        self._runtime.post(self._end)
        with suppress(TimeoutError):
            self._ended.result(AGAIN_S[1])

    # --- on the runtime's thread

    def _end(self) -> None:
        self._ending.set()
        if self._transport is not None:
            self._transport.abort()

    async def _borrow(self) -> None:
        while not self._ending.is_set():
            with suppress(OSError, ValueError, msgspec.MsgspecError):  # nobody lends, or what is said is damaged
                await self._connect()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), random.uniform(*AGAIN_S))  # noqa: S311  # not secret

    async def _connect(self) -> None:
        """Pass on what is lent, until the lender has ended or is parted from this process."""
        directory = open_directory(self._place)
        reader, writer = await asyncio.open_unix_connection(path_in(directory), limit=MOST_LINE_BYTES)
        self._transport = writer.transport
        try:
            if is_own(writer.get_extra_info("socket")):
                writer.write(line(Hello(self._contender.name, self._place.boot)))
                while said := await reader.readline():
                    self._contender.lent(msgspec.json.decode(said, type=Word).lent)
        finally:
            self._transport.abort()
            self._contender.lent(None)


def borrower_of(stores: Stores, runtime: Runtime, contender: Contender) -> Borrower | None:
    """Return a started borrower, if the settings ask for one and this host has a place for it."""
    if not stores.settings.leadership.borrows_session or stores.snapshots is None:
        return None
    return Borrower(runtime, contender, stores.snapshots)
