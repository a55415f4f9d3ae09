"""The shared session: the agent of a host lends its ZooKeeper session to the contenders there, over a socket.

The socket lies beside the snapshots, in a directory that only this user or root can write, and is for this user alone
(0600). A member sends one line that says who it is; the holder sends a line for each change of what it lends. Of the
agents of one host and cluster one lends: the one that holds the lock. Both ends work on the threads of their runtimes.
"""

import asyncio
import fcntl
import logging
import os
import random
import socket
import struct
import uuid
from contextlib import suppress
from functools import partial
from typing import Self

import msgspec

from ha.config.snapshot_dir import ROOT, OpenDirectory, SnapshotDirectory, open_directory
from ha.config.stores import Stores
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.contender.session_holder import SessionHolder
from leader.election.borrowed_session import Lent
from leader.timing import Timing

SOCKET = "session"
LOCK = "session.lock"
MOST_LINE_BYTES = 1024
ANSWERS_WITHIN_S = 1.0  # seconds in which the kernel connects to a socket on which somebody listens

_CREDENTIALS = struct.Struct("3i")


class Hello(msgspec.Struct, frozen=True):
    """A member's first line."""

    name: str  # of the contender, for people
    boot: str  # its boot clock: one of another clock cannot use the holder's times


class Word(msgspec.Struct, frozen=True):
    """A holder's line."""

    lent: Lent | None = None  # the newest confirmation; None if nothing is lent for now


def line(message: Hello | Word) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


def path_in(directory: OpenDirectory) -> str:
    """Return the socket's path, short enough for a socket's name wherever the directory is."""
    return f"/proc/self/fd/{directory.descriptor}/{SOCKET}"


def is_own(connected: socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's."""
    given = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(given)[1] in (os.geteuid(), ROOT)


def lends(place: SnapshotDirectory) -> bool:
    """Whether an agent of this user or of root lends its session there now."""
    try:
        directory = open_directory(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(ANSWERS_WITHIN_S)
            asked.connect(path_in(directory))
            return is_own(asked)
    except OSError:
        return False


LOOK_EVERY_S = 1.0
"""Seconds between two tries to become the lender, and between two looks whether the socket is still in its place."""

MOST_MEMBERS = 1000  # one more is turned away; it has its own session

MOST_UNREAD_BYTES = 65_536
"""A member that has left so much unread is paused: it is parted, and its node goes when its belief has ended."""

_log = logging.getLogger("ha")


class Lender:
    """Lends one process's ZooKeeper session; it uses nothing else of that process."""

    def __init__(self, runtime: Runtime, name: str, timing: Timing, place: SnapshotDirectory) -> None:
        """Start in the background."""
        # `runtime`: of the process, which has a ZooKeeper. `name`: of the process, for people. `place`: the directory
        # that holds the socket.
        self._runtime, self._place = runtime, place
        self._holder = SessionHolder(runtime, name, timing, new_incarnation=lambda: uuid.uuid4().hex[:8])
        self._joined: set[asyncio.WriteTransport] = set()
        self._complaint = ""
        self.lends = False
        """Whether this process is the one that lends on this host."""
        runtime.attach(self._holder)
        self._ending = asyncio.Event()
        self._ended = runtime.run(self._lend())

    @property
    def members(self) -> int:
        """How many processes are connected."""
        return len(self._joined)

    def close(self) -> None:
        """Stop lending. The session, and with it all that it attests, ends when the process closes its ZooKeeper."""
        self._runtime.post(self._ending.set)
        with suppress(TimeoutError):
            self._ended.result(2 * LOOK_EVERY_S)

    # --- on the runtime's thread

    async def _lend(self) -> None:
        while not self._ending.is_set():
            try:
                with _Place(self._place) as bound:
                    await self._serve(bound)
            except BlockingIOError:
                pass  # another agent lends
            except OSError as error:
                self._complain(f"{error.strerror or error}")
            await self._rest()

    async def _serve(self, bound: "_Place") -> None:
        server = await asyncio.start_unix_server(self._serve_member, sock=bound.socket, limit=MOST_LINE_BYTES)
        self.lends, self._complaint = True, ""
        _log.info("This process lends its ZooKeeper session to the contenders of this host, in %s.", self._place.path)
        try:
            while not self._ending.is_set() and bound.in_place():
                await self._rest()
        finally:
            self.lends = False
            server.close()
            for transport in self._joined:
                transport.abort()
            while self._joined:  # noqa: ASYNC110  # two turns of the loop
                await asyncio.sleep(0)

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), LOOK_EVERY_S)

    def _complain(self, sentence: str) -> None:
        if sentence != self._complaint:
            self._complaint = sentence
            _log.warning("This process cannot lend its session in %s (%s); it tries again.", self._place.path, sentence)

    async def _serve_member(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a process that has connected, until either end closes; turn those away that do not belong here."""
        transport, number = writer.transport, None
        try:
            if is_own(writer.get_extra_info("socket")):
                hello = msgspec.json.decode(await reader.readline(), type=Hello)
                if hello.boot == self._place.boot and len(self._joined) < MOST_MEMBERS:
                    self._joined.add(transport)
                    number = self._holder.join(hello.name[:64], partial(send, transport))
                    await reader.read(1)  # a member says nothing more
        except (OSError, ValueError, msgspec.MsgspecError):
            pass  # it is gone, or has said something else
        finally:
            transport.abort()
            self._joined.discard(transport)
            if number is not None:
                self._holder.leave(number)


def send(member: asyncio.WriteTransport, lent: Lent | None) -> None:
    """Tell a member what is lent to it; part from one that does not read."""
    if member.get_write_buffer_size() > MOST_UNREAD_BYTES:
        member.abort()
    elif not member.is_closing():
        member.write(line(Word(lent)))


class _Place:
    """The lock and the bound socket."""

    def __init__(self, place: SnapshotDirectory) -> None:
        self._path = place.path / SOCKET
        self._directory: OpenDirectory = open_directory(place, make=True)
        at = self._directory.descriptor
        self._lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=at)
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.bind(path_in(self._directory))
            os.chmod(SOCKET, 0o600, dir_fd=at)
            self._bound = os.stat(SOCKET, dir_fd=at)
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.in_place():
            with suppress(OSError):
                self._path.unlink()
        self.socket.close()
        os.close(self._lock)

    def in_place(self) -> bool:
        """Whether others find this very socket."""
        try:
            return os.path.samestat(self._bound, self._path.lstat())
        except OSError:
            return False


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
