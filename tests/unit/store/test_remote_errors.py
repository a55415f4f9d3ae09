"""Failures of HDFS in both drivers: an operation is refused only if it certainly did not happen."""

import json
import socket
import socketserver
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from store import hadoop_errors as hadoop
from store.errors import (
    AlreadyExists,
    ConnectionLost,
    DeadlineExceeded,
    HasSnapshots,
    Invalid,
    NoSpace,
    NotFound,
    NotSent,
    NotWritable,
    PermissionDenied,
    Refused,
    StoreError,
    Unknown,
)
from store.files import Files
from store.hdfs import _classified, _classify
from store.open import driver_of
from store.webhdfs import WebHdfsFiles
from tests.patience import PATIENCE_S

OPERATIONS: dict[str, Callable[[Files], object]] = {
    "list": lambda files: files.list("a"),
    "make_directory": lambda files: files.make_directory("a"),
    "make_root": lambda files: files.make_root(),
    "rename": lambda files: files.rename("a", "b"),
    "read": lambda files: files.read("a", 10),
    "write": lambda files: files.write("a", b"1"),
    "delete": lambda files: files.delete("a"),
}


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that break off are what is tested."""


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            handle(self.request)

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(PATIENCE_S)


def answering(status: str, body: bytes, *headers: str) -> Callable[[socket.socket], None]:
    def handle(connection: socket.socket) -> None:
        _request(connection)
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers])
        connection.sendall(head.encode() + b"\r\n\r\n" + body)

    return handle


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            break
        received += part
    return received


def remote(exception: str, message: str = "") -> bytes:
    return json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()


@pytest.fixture
def closed_port() -> Iterator[str]:
    with socket.socket() as taken:  # bound and not listening: nobody else can have it, and nobody answers
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_nobody_there(scheme: str, name: str, closed_port: str) -> None:
    with pytest.raises(NotSent):
        OPERATIONS[name](driver_of(f"{scheme}://{closed_port}/ha")())


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_a_host_that_no_name_server_knows(scheme: str) -> None:
    with pytest.raises(NotSent):
        driver_of(f"{scheme}://no.such.host.invalid:8020/ha")().rename("a", "b")


NONSENSE = {
    "nothing": b"",
    "hello": b"220 mail.example ESMTP\r\n",
    "zeros": b"\0" * 64,
    "ones": b"\xff\xff\xff\x7f" + b"\xff" * 64,
    "http": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "list": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
    "no-json": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
    "odd-status": b"HTTP/1.1 777 What\r\nContent-Length: 0\r\n\r\n",
    "bare-404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope",
    "json-404": b'HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\n{"RemoteException": 1}',
    "redirect": b"HTTP/1.1 307 Go\r\nLocation: ftp://x/\r\nContent-Length: 0\r\n\r\n",
    "to-nowhere": b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "bad-gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_nonsense_proves_nothing(scheme: str, nonsense: bytes) -> None:
    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(nonsense)

    with serving(handle) as address:
        files = driver_of(f"{scheme}://{address}/ha", timeout=(2, 2))()
        for name, operation in OPERATIONS.items():
            with pytest.raises(StoreError) as caught:
                operation(files)
            if name in {"rename", "delete", "make_root"}:
                assert isinstance(caught.value, Unknown), name
        files.close()


def test_a_gateway_that_ignores_the_options_of_a_rename_is_refused() -> None:
    """A NameNode that keeps them answers without content, as HttpFS does not."""
    with serving(answering("200 OK", b'{"boolean": false}')) as address:
        files = WebHdfsFiles(address, "/ha", user="ha")
        with pytest.raises(Invalid) as caught:
            files.rename("a", "b")
        files.close()
    said = str(caught.value)
    assert said.startswith(f"webhdfs://{address}/ha ")
    for word in ("renameoptions", "HttpFS", "hdfs://", "WebHDFS of the NameNodes"):
        assert word in said


@pytest.mark.parametrize(
    "body",
    [b'{"boolean": true}', b'{"boolean":true}\n', b"{}", b'{"boolean": 0}', b"null", b"[false]", b"false", b"\n"],
)
def test_what_such_a_gateway_did_is_unknown(body: bytes) -> None:
    """It may have moved the entry into the target."""
    with serving(answering("200 OK", body)) as address:
        files = WebHdfsFiles(address, "/ha", user="ha")
        with pytest.raises(Unknown):
            files.rename("a", "b")
        files.close()


def test_a_file_is_not_written_by_a_gateway_that_ignores_the_options() -> None:
    with serving(_data_node(b"201 Created", b'{"boolean": false}')) as address:
        files = WebHdfsFiles(address, "/ha", user="ha")
        with pytest.raises(Invalid, match="renameoptions"):
            files.write("a", b"1")
        files.close()


def _data_node(written: bytes, renamed: bytes) -> Callable[[socket.socket], None]:
    """Return a handler that is NameNode and DataNode for one write: the bytes' answer, and that of the rename."""

    def handle(connection: socket.socket) -> None:
        asked = _request(connection)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(renamed), renamed)
        if b"op=CREATE" in asked:
            host = next(each for each in asked.split(b"\r\n") if each.lower().startswith(b"host: "))[6:]
            there = b"Location: http://%s/data\r\n" % host
            head = b"HTTP/1.1 307 Go\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n" % there
        elif b" /data" in asked:
            head = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % written
        connection.sendall(head)

    return handle


@pytest.mark.parametrize("written", [b"200 OK", b"202 Accepted", b"307 Go"])
def test_content_counts_as_written_only_if_a_data_node_says_that_it_made_the_file(written: bytes) -> None:
    with serving(_data_node(b"201 Created", b"")) as address:
        WebHdfsFiles(address, "/ha", user="ha").write("a", b"1")
    with serving(_data_node(written, b"")) as address, pytest.raises(NotWritable, match="nothing was replaced"):
        WebHdfsFiles(address, "/ha", user="ha").write("a", b"1")


@pytest.mark.parametrize("body", [b'{"boolean": false}', b"", b'{"boolean": 1}', b"true"])
def test_a_directory_is_made_only_if_the_server_says_so(body: bytes) -> None:
    with serving(answering("200 OK", body)) as address:
        files = WebHdfsFiles(address, "/ha", user="ha")
        with pytest.raises(Unknown):
            files.make_root()
        with pytest.raises(NotWritable, match="none was put into place"):
            files.make_directory("a")
        files.close()


def test_files_are_concatenated_only_by_an_empty_answer() -> None:
    with serving(answering("200 OK", b"")) as address:
        WebHdfsFiles(address, "/ha", user="ha").concat("a", ["b"])
    with serving(answering("200 OK", b'{"boolean": false}')) as address, pytest.raises(Unknown):
        WebHdfsFiles(address, "/ha", user="ha").concat("a", ["b"])


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.webhdfs.MAX_ANSWER_BYTES", 1000)
    with serving(answering("200 OK", b" " * 1001)) as address, pytest.raises(Unknown, match="more than 1000 bytes"):
        driver_of(f"webhdfs://{address}/ha")().list("")


def test_a_silent_name_node() -> None:
    end = threading.Event()

    def wait(_: socket.socket) -> None:
        end.wait(PATIENCE_S)

    with serving(wait) as address:
        files = driver_of(f"webhdfs://{address}/ha", timeout=(1, 0.05))()
        with pytest.raises(DeadlineExceeded):
            files.rename("a", "b")
        with pytest.raises(NotWritable):  # what was to be replaced is not touched yet
            files.write("a", b"1")
        end.set()
        files.close()


class Relay:
    """Passes on to a server, and swallows the answer to the first request that holds a certain word."""

    def __init__(self, target: tuple[str, int], word: bytes) -> None:
        self._target = target
        self._word = word
        self.requests = 0

    def __call__(self, client: socket.socket) -> None:
        with socket.create_connection(self._target, PATIENCE_S) as server:
            swallow = threading.Event()

            def back() -> None:
                while (data := server.recv(65536)) and not swallow.is_set():
                    client.sendall(data)
                client.shutdown(socket.SHUT_RDWR)

            answers = threading.Thread(target=back)
            answers.start()
            while data := client.recv(65536):
                if self._word in data:
                    self.requests += 1
                    if self.requests == 1:
                        swallow.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
            answers.join(PATIENCE_S)


def _lost_answer(uri: str, word: bytes, name_nodes: int) -> tuple[StoreError, int, set[str]]:
    parts = urlsplit(uri)
    root = f"{parts.path}/{uuid.uuid4().hex}"
    direct = driver_of(f"{parts.scheme}://{parts.netloc}{root}")()
    direct.make_root()
    direct.make_directory("a")
    relay = Relay((str(parts.hostname), int(parts.port or 0)), word)
    with serving(relay) as address:
        ids = ",".join(f"nn{number}" for number in range(name_nodes))
        config = {"dfs.ha.namenodes.ns": ids}
        for each in ids.split(","):
            config[f"dfs.namenode.rpc-address.ns.{each}"] = address
            config[f"dfs.namenode.http-address.ns.{each}"] = address
        files = driver_of(f"{parts.scheme}://ns{root}", config=config)()
        with pytest.raises(StoreError) as caught:
            files.rename("a", "b")
        files.close()
        del files
    result = {entry.name for entry in direct.list("")}
    direct.delete("b", recursive=True)
    direct.close()
    return caught.value, relay.requests, result


@pytest.mark.hdfs
@pytest.mark.parametrize("name_nodes", [1, 2])
@pytest.mark.parametrize(("scheme", "word"), [("hdfs", b"rename2"), ("webhdfs", b"op=RENAME")])
def test_a_lost_answer_is_unknown_and_the_request_not_repeated(
    request: pytest.FixtureRequest, scheme: str, word: bytes, name_nodes: int
) -> None:
    """A second try would find the source gone and call it refused, although the first has happened."""
    error, requests, after = _lost_answer(request.getfixturevalue(f"{scheme}_uri"), word, name_nodes)
    assert after == {"b"}
    assert requests == 1
    assert isinstance(error, ConnectionLost)


def _name_nodes(*addresses: str) -> WebHdfsFiles:
    config = {"dfs.ha.namenodes.ns": ",".join(f"n{number}" for number in range(len(addresses)))}
    config |= {f"dfs.namenode.http-address.ns.n{number}": address for number, address in enumerate(addresses)}
    return WebHdfsFiles("ns", "/ha", user="ha", config=config)


def test_the_active_name_node_is_found_and_remembered(closed_port: str) -> None:
    asked: list[str] = []

    def named(name: str, then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
        def handle(connection: socket.socket) -> None:
            asked.append(name)
            then(connection)

        return handle

    standby = named("standby", answering("403 Forbidden", remote("StandbyException", "no")))
    active = named("active", answering("200 OK", b""))
    with serving(standby) as first, serving(active) as second:
        files = _name_nodes(closed_port, first, second)
        files.rename("a", "b")
        files.rename("b", "a")
        files.close()
    assert asked == ["standby", "active", "active"]


def test_no_active_name_node(closed_port: str) -> None:
    with serving(answering("403 Forbidden", remote("StandbyException", "no"))) as standby:
        for order in ((closed_port, standby), (standby, closed_port)):
            with pytest.raises(NotWritable):
                _name_nodes(*order).rename("a", "b")


def test_a_name_node_that_breaks_off_ends_the_search() -> None:
    asked: list[int] = []

    def active(connection: socket.socket) -> None:
        asked.append(1)
        answering("200 OK", b"")(connection)

    def broken(connection: socket.socket) -> None:
        _request(connection)

    with serving(broken) as first, serving(active) as second, pytest.raises(ConnectionLost):
        _name_nodes(first, second).rename("a", "b")
    assert asked == []


def test_without_a_login() -> None:
    with serving(answering("401 Authentication required", b"")) as address, pytest.raises(PermissionDenied):
        _name_nodes(address).rename("a", "b")


SAYINGS = [
    ("java.io.FileNotFoundException", "rename source /a is not found.", NotFound),
    ("java.io.FileNotFoundException", "Path is not a file: /a", Invalid),
    ("org.apache.hadoop.fs.FileAlreadyExistsException", "rename destination /a already exists", AlreadyExists),
    ("java.io.IOException", "Source /a and destination /b must both be directories", AlreadyExists),
    ("java.io.IOException", "Rename destination /a/b is a directory or file under source /a", Invalid),
    ("java.io.IOException", "rename: Pathname too long.  Limit 8000 characters, 1000 levels.", Invalid),
    ("java.io.IOException", "Rename of /a/x to /b/x is not allowed, no eligible destination in the same n", Invalid),
    ("java.io.IOException", "Unable to write to the journal", Unknown),
    ("java.io.IOException", "xx: Source /a and destination /b must both be directories", Unknown),
    ("java.lang.NullPointerException", "", Unknown),
    ("org.apache.hadoop.security.AccessControlException", "Permission denied: user=x", PermissionDenied),
    ("org.apache.hadoop.security.AccessControlException", "/a (is not a directory)", Invalid),
    ("org.apache.hadoop.fs.ParentNotDirectoryException", "/a (is not a directory)", Invalid),
    ("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The NameSpace quota", NoSpace),
    ("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota", NoSpace),
    ("org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException", "The maximum", Invalid),
    ("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot rename /a.", NotWritable),
    (
        "org.apache.hadoop.hdfs.protocol.SnapshotException",
        "The directory /a cannot be deleted since /a is snapshottable and already has snapshots",
        HasSnapshots,
    ),
    ("org.apache.hadoop.ipc.StandbyException", "Operation category WRITE is not supported", NotWritable),
    ("org.apache.hadoop.ipc.RetriableException", "NameNode still not started", NotWritable),
]


@pytest.mark.parametrize(
    ("message", "ends"),
    [
        (
            "The NameSpace quota (directories and files) of directory /a b/c is exceeded: quota=2 file count=3",
            "free some names there, or raise the quota with `hdfs dfsadmin -setQuota NUMBER '/a b/c'`",
        ),
        (
            "The DiskSpace quota of /a is exceeded: quota = 1 B but diskspace consumed = 384 MB",
            "free some space there, or raise the quota with `hdfs dfsadmin -setSpaceQuota BYTES /a`",
        ),
        (
            "The directory item limit of /a is exceeded: limit=120 items=120",
            "free some of /a, or raise the NameNode's dfs.namenode.fs-limits.max-directory-items",
        ),
        ("No space left on device: '/a'", "free some space there"),
    ],
)
def test_a_limit_that_is_reached_says_what_ends_that(message: str, ends: str) -> None:
    assert str(NoSpace(message)) == f"{message}: {ends}"


@pytest.mark.parametrize(("exception", "message", "kind"), SAYINGS)
def test_each_exception_of_a_name_node_has_its_class(exception: str, message: str, kind: type[StoreError]) -> None:
    trace = f"{message}\n\tat org.apache.hadoop.Server.call(Server.java:1)"
    expected = kind if issubclass(kind, Refused) else type(None)
    assert type(hadoop.refusal(exception, trace)) is expected
    assert type(hadoop.refusal(exception.rpartition(".")[2].rpartition("$")[2], message)) is expected
    rust = trace.replace("\n", "\\n").replace("\t", "\\t")
    error = _classify(RuntimeError(f'RPCError("{exception}", "{rust}")'))
    assert type(error) is kind
    assert "\n" not in str(error)
    assert "Server.java" not in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("Connection refused (os error 111)"), NotSent),
        (OSError("No route to host (os error 113)"), NotSent),
        (OSError("failed to lookup address information: Name or service not known"), NotSent),
        (OSError("RPC listener disconnected"), ConnectionLost),
        (OSError("Connection reset by peer (os error 104)"), ConnectionLost),
        (OSError("Connection timed out (os error 110)"), ConnectionLost),
        (FileNotFoundError("/a"), NotFound),
        (FileNotFoundError("Path is not a file: /a\n\tat x"), Invalid),
        (FileExistsError("/a"), AlreadyExists),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), Invalid),
        (RuntimeError('SASLError("no")'), PermissionDenied),
        (RuntimeError("NoSASLMechanism"), PermissionDenied),
        (RuntimeError("InvalidRPCResponse(DecodeError)"), Unknown),
        (RuntimeError('DataTransferError("x")'), Unknown),
        (RuntimeError('RPCError("java.io.IOException", "say \\"must both be directories\\""'), Unknown),
        (NotImplementedError("erasure coding"), Unknown),
        (ValueError("?"), Unknown),
    ],
    ids=str,
)
def test_each_error_of_hdfs_native_has_its_class(error: BaseException, kind: type[StoreError]) -> None:
    assert type(_classify(error)) is kind


class PanicException(BaseException):  # pyo3's name
    """A Rust panic, as Python sees it."""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (FileExistsError("There is one."), AlreadyExists),
        (NotSent("Nothing was sent."), NotSent),
        (PanicException("index out of bounds"), Unknown),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_panic_is_unknown_and_what_is_no_answer_passes(raised: BaseException, kind: type[BaseException]) -> None:
    with pytest.raises(BaseException) as caught, _classified:  # noqa: PT011  # the kind is compared exactly
        raise raised
    assert type(caught.value) is kind
    assert (caught.value is raised) is (kind is type(raised))


class Unsteady:
    """An hdfs-native client whose DataNode drops the first connections: on a real one that cannot be provoked."""

    def __init__(self, dropped: int, said: str) -> None:
        self.dropped, self.said, self.asked = dropped, said, 0

    def read(self, path: str) -> "Unsteady | BytesReader":
        self.asked += 1
        if self.asked > self.dropped:
            return BytesReader(b"content of " + path.encode())
        return self

    def __len__(self) -> int:
        raise RuntimeError(self.said)


class BytesReader(bytes):
    def read(self) -> bytes:
        return bytes(self)


DROPPED = 'DataTransferError("All DataNodes failed: [DatanodeInfoProto { .. }]")'


@pytest.mark.parametrize(
    ("dropped", "said", "asked"),
    [(0, "", 1), (1, DROPPED, 2), (2, DROPPED, 3), (3, DROPPED, 3), (1, "InvalidRPCResponse(DecodeError)", 1)],
)
def test_a_block_is_asked_for_three_times_as_by_hadoops_own_client(dropped: int, said: str, asked: int) -> None:
    files = driver_of("hdfs://127.0.0.1:9/root")()
    client = vars(files)["_client"] = Unsteady(dropped, said)
    if asked > dropped:
        assert files.read("f", 100) == b"content of /root/f"
    else:
        with pytest.raises(Unknown):
            files.read("f", 100)
    assert client.asked == asked
