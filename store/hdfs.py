"""Files on HDFS over Hadoop RPC (``hdfs://``), through hdfs-native.

hdfs-native 0.14.7 never sends a *mutation* twice unless the first NameNode said that it is not the active one or could
not be connected to, so its answers may be believed. Versions around it do send them twice: after a lost answer, the
second try then says "not found" about a rename that has happened. The tests check that for every new version.
"""

import ctypes
import os
import re
import sys
import uuid
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from tenacity import retry, retry_if_exception_message, stop_after_attempt, wait_random

from store import paths
from store.errors import (
    AlreadyExists,
    ConnectionLost,
    Invalid,
    NotFound,
    NotSent,
    NotWritable,
    PermissionDenied,
    Refused,
    StoreError,
    Unknown,
)
from store.files import DIRECTORY_MODE, Entry
from store.hadoop_errors import configuration, in_turn, namenodes, refusal

if TYPE_CHECKING:
    from hdfs_native import Client

# hdfs-native's other errors are a RuntimeError with the debug form of a Rust value: Name("class", "message\n\tat ...").
_RPC_ERROR = re.compile(r'^(?:Fatal)?RPCError\("([^"]*)", "((?:[^"\\]|\\.)*)', re.DOTALL)

_RUST_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_RUST_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

# Errors that hdfs-native finds before it sends anything.
_OWN_ERRORS: tuple[tuple[re.Pattern[str], type[StoreError]], ...] = (
    (re.compile(r"^(?:InvalidArgument|InvalidPath|UrlParseError|XmlParseError)\("), Invalid),
    (re.compile(r"^(?:SASLError|GSSAPIError|NoSASLMechanism)\b"), PermissionDenied),
)

# These mean that no connection was made; any other I/O error may come after the request was sent.
_NO_CONNECTION = re.compile(
    r"\(os error (?:99|101|111|113)\)$|^failed to lookup address information|^Connection refused"
)

# A busy DataNode drops a connection now and then. hdfs-native then gives a block up once it has tried each replica
# (https://github.com/Kimahriman/hdfs-native/issues/227); Hadoop's own client asks three times, and waits in between.
_until_a_datanode_answers = retry(
    retry=retry_if_exception_message(match=r"DataTransferError\("),
    stop=stop_after_attempt(3),
    wait=wait_random(max=0.2),
    reraise=True,
)

OBSERVERS = "dfs.client.failover.proxy.provider"
ACTIVE_ONLY = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def _classify(error: BaseException) -> StoreError:
    """Return the error that is proved by this one of hdfs-native; Unknown if it proves nothing."""
    text = str(error)
    line = text.partition("\n")[0]
    if isinstance(error, FileNotFoundError):
        return refusal("FileNotFoundException", text) or NotFound(line)
    if isinstance(error, FileExistsError):
        return AlreadyExists(line)
    if isinstance(error, OSError):
        return NotSent(line) if _NO_CONNECTION.search(line) else ConnectionLost(line)
    if found := _RPC_ERROR.match(text):
        message = _RUST_ESCAPE.sub(_unescaped, found[2])
        return refusal(found[1], message) or Unknown(f"{found[1]}: {message.partition(chr(10))[0]}")
    kind = next((kind for start, kind in _OWN_ERRORS if start.match(text)), Unknown)
    return kind(f"{type(error).__name__}: {line}")


def _unescaped(match: re.Match[str]) -> str:
    if match[2]:
        return _RUST_LETTERS.get(match[2], match[2])
    code = int(match[1], 16)
    return chr(code) if code <= sys.maxunicode else match[0]


class _Classified:
    """Turns hdfs-native's errors into ours. A plain class: a generator's context manager takes nine times as long."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, StoreError):
            return
        if isinstance(error, Exception):
            raise _classify(error) from error
        if type(error).__name__ == "PanicException":  # a Rust panic, which pyo3 keeps out of Exception
            raise Unknown(f"hdfs-native panicked: {error}") from error


_classified = _Classified()


class HdfsFiles:
    """A :class:`store.files.Files` on HDFS: one RPC per operation, but for ``write`` (six, and half a second)."""

    def __init__(
        self,
        authority: str,  # `host:port` of a NameNode, or a nameservice that Hadoop's configuration knows
        root: str,  # absolute path of the root directory
        *,
        config: Mapping[str, str] | None = None,  # Hadoop settings over those of `HADOOP_CONF_DIR`
        turn: int = 0,  # number of the NameNode that is asked first, modulo; see `store.hadoop_errors.in_turn`
        directory_mode: int = DIRECTORY_MODE,  # permissions of directories that are made
    ) -> None:
        self.uri = f"hdfs://{authority}{root}"
        self._root = "" if root == "/" else root
        self._mode = directory_mode
        with _classified:
            self._client = _connect(authority, config or {}, turn)
        _every.add(self)

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory; see :meth:`store.files.Files.list`."""
        target = self._at(path, root=True)
        with _classified:
            found = list(self._client.list_status(target))
        if len(found) == 1 and found[0].path == target and not found[0].isdir:
            raise Invalid(f"Not a directory: {path!r}")
        entries = [
            Entry(each.path.rpartition("/")[2], each.isdir, each.length, each.modification_time) for each in found
        ]
        return [entry for entry in entries if not paths.hidden(entry.name)]

    def make_directory(self, path: str) -> None:
        """Create one directory; see :meth:`store.files.Files.make_directory`."""
        target = self._at(path)
        with _classified:
            self._client.mkdirs(target, permission=self._mode, create_parent=False)

    def make_root(self) -> None:
        """Create the root and its parents; no error if it exists."""
        with _classified:
            self._client.mkdirs(self._root or "/", permission=self._mode, create_parent=True)

    def rename(self, source: str, destination: str) -> None:
        """Rename atomically, never over an existing entry; see :meth:`store.files.Files.rename`."""
        old, new = self._at(source), self._at(destination)
        with _classified:
            self._client.rename(old, new, overwrite=False)

    def read(self, path: str, limit: int) -> bytes:
        """Return a small file's content; see :meth:`store.files.Files.read`."""
        target = self._at(path)
        with _classified:
            return self._content(target, limit)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically; see :meth:`store.files.Files.write`."""
        target = self._at(path)
        staged = self._own(paths.sibling(path, f"{paths.STAGING}-{uuid.uuid4().hex}"))
        try:
            self._stage(staged, data)
            with _classified:
                self._client.rename(staged, target, overwrite=True)
        except Refused as error:
            self._discard(staged)
            if isinstance(error, AlreadyExists):
                raise Invalid(f"A directory cannot be replaced by a file: {path!r}") from error
            raise

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete an entry; see :meth:`store.files.Files.delete`."""
        target = self._at(path)
        with _classified:
            deleted = self._client.delete(target, recursive=recursive)
        if not deleted:
            raise NotFound(f"No such entry: {path!r}")

    def close(self) -> None:
        """Drop the connections, which hdfs-native closes with the last reference."""
        vars(self).pop("_client", None)

    def _at(self, path: str, *, root: bool = False) -> str:
        return self._own(paths.check(path, root=root))

    @_until_a_datanode_answers
    def _content(self, target: str, limit: int) -> bytes:
        reader = self._client.read(target)
        if len(reader) > limit:
            raise Invalid(f"Longer than {limit} bytes: {target!r}")
        data = reader.read()
        if len(data) != len(reader):
            raise Unknown(f"Only {len(data)} of {len(reader)} bytes came: {target!r}")
        return data

    def _own(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    def _stage(self, staged: str, data: bytes) -> None:
        """Write the temporary file; an error leaves the destination as it was."""
        from hdfs_native import WriteOptions  # noqa: PLC0415 - only users of HDFS pay for the import

        try:
            with _classified:
                writer = self._client.create(staged, WriteOptions(overwrite=False, create_parent=False))
                writer.write(data)
                writer.close()
        except Unknown as error:
            raise NotWritable(f"The content could not be written, so nothing was replaced: {error}") from error

    def _discard(self, staged: str) -> None:
        try:
            self._client.delete(staged)
        except Exception:  # noqa: BLE001 - a leftover is hidden and harmless; the first error is the one to report
            return


def _connect(authority: str, config: Mapping[str, str], turn: int) -> "Client":
    from hdfs_native import Client  # noqa: PLC0415 - 53 ms, which only users of HDFS should pay

    settings = dict(config)
    nodes = [authority]
    if ":" not in authority:
        known = in_turn(configuration(config), authority, turn)
        nodes = namenodes(known, authority, "rpc-address")
        settings = {**known, **settings, (order := f"dfs.ha.namenodes.{authority}"): known[order]}
        # An observer NameNode may be behind, and the protocol must read the present state.
        settings[f"{OBSERVERS}.{authority}"] = ACTIVE_ONLY
    # Ask each NameNode once and report at once: by default hdfs-native tries for three minutes.
    settings["dfs.client.failover.max.attempts"] = str(len(nodes) - 1)
    settings["dfs.client.failover.sleep.base.millis"] = "0"
    settings["dfs.client.failover.sleep.max.millis"] = "0"
    return Client(f"hdfs://{authority}", settings)


_every: "weakref.WeakSet[HdfsFiles]" = weakref.WeakSet()


def _after_fork() -> None:
    # A client dropped in a forked child waits for ever for the parent's threads, also at the child's exit (seen with
    # 0.14.7). One reference that is never returned keeps the copy alive until the process is gone.
    for each in list(_every):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(vars(each).get("_client")))


os.register_at_fork(after_in_child=_after_fork)
