"""Each kind of probe asks something real: a command, a server, a port, and the commit logs of a store."""

import http.server
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.config.sources import load
from ha.config.stores import Stores
from ha.sidecar.probes import probe_of
from leader.errors import InvalidSettings
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.errors import StoreError
from tests.patience import PATIENCE_S
from tests.unit.ha.led import Led, session
from tests.unit.ha.programs import alive
from tests.unit.ha.waiting import wait_until

VARIABLES = {"HA_EPOCH": "7"}


@pytest.fixture
def stores(quick: Path) -> Iterator[Stores]:
    made = Stores(load({"files": quick.as_uri()}))
    yield made
    made.close()


@pytest.fixture
def directory(quick: Path, stores: Stores) -> FencedDirectory:
    epoch = Led(quick).claim("orders", "a:1")
    return FencedDirectory(stores.files, "orders", LeaderDirectory(epoch, session(epoch)), PATIENCE_S)


def asked(text: str, stores: Stores, directory: FencedDirectory, timeout: float = PATIENCE_S) -> str:
    return probe_of(text, stores)(directory, VARIABLES)(timeout)


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.partition("=")[2] or 200))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_command_that_does_not_end_is_killed_with_what_it_has_started(
    stores: Stores, directory: FencedDirectory, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    command = f"exec:sh -c 'sleep 600 & echo $! > {pid}; wait'"
    assert asked(command, stores, directory, 0.5) == "it did not end within 0.5 s"
    if pid.exists():  # on a busy machine the time may have been over before
        wait_until(lambda: not alive(int(pid.read_text() or 0)))


@pytest.mark.parametrize(
    ("probe", "wrong"),
    [
        ("exec:sh -c 'exit 0'", ""),
        ("exec:sh -c 'exit $HA_EPOCH'", "it exited with 7"),
        ("exec:sh -c 'echo it is full; exit 1'", "it exited with 1: it is full"),
        (f"exec:{sys.executable} -c ''", ""),
        ("http:http://127.0.0.1:PORT", ""),
        ("http:http://127.0.0.1:PORT/health?code=204", ""),
        ("http:http://127.0.0.1:PORT/?code=399", ""),
        ("http:http://127.0.0.1:PORT/?code=400", "it answered 400"),
        ("http:http://127.0.0.1:PORT/?=503", "it answered 503"),
        ("tcp:127.0.0.1:PORT", ""),
    ],
)
def test_a_command_says_by_its_exit_code_a_server_by_its_status_and_a_port_by_its_connection(
    probe: str, wrong: str, port: int, stores: Stores, directory: FencedDirectory
) -> None:
    assert asked(probe.replace("PORT", f"{port}"), stores, directory) == wrong


def test_nobody_listens(stores: Stores, directory: FencedDirectory) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        free = bound.getsockname()[1]
        for text in (f"tcp:127.0.0.1:{free}", f"http:http://127.0.0.1:{free}/"):
            with pytest.raises(ConnectionRefusedError):
                asked(text, stores, directory)


def test_a_server_that_accepts_and_says_nothing(stores: Stores, directory: FencedDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert not asked(f"tcp:127.0.0.1:{port}", stores, directory)
        with pytest.raises(TimeoutError):
            asked(f"http:http://127.0.0.1:{port}/", stores, directory, 0.2)


def test_an_answer_that_is_none_of_http(stores: Stores, directory: FencedDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:

        def answer() -> None:
            connection, _ = odd.accept()
            connection.recv(1000)
            connection.sendall(b"220 mail.example.com\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        wrong = asked(f"http:http://127.0.0.1:{odd.getsockname()[1]}/", stores, directory)
    assert wrong.startswith("its answer is none of HTTP")


def commit(logs: Path, batch: int) -> None:
    (logs / "commits").mkdir(parents=True, exist_ok=True)
    (logs / "commits" / f"{batch}").touch()
    (logs / "commits" / f".{batch}.crc").touch()


def test_a_new_batch_of_the_named_query_is_progress(quick: Path, stores: Stores, directory: FencedDirectory) -> None:
    probe = probe_of("progress:clean", stores)(directory, {})
    logs = quick / directory.at("spark/clean")
    assert not probe(0.0), "there is nothing to compare with"
    assert probe(0.0) == "there is no batch"
    commit(logs, 0)
    commit(logs.with_name("sums"), 0)
    assert not probe(0.0)
    commit(logs.with_name("sums"), 1)
    assert probe(0.0) == "there is no new batch; the newest is clean 0"


def test_a_new_batch_of_any_query_is_progress(quick: Path, stores: Stores, directory: FencedDirectory) -> None:
    probe = probe_of("progress", stores)(directory, {})
    logs = quick / directory.at("spark/clean")
    commit(logs, 8)
    assert not probe(0.0)
    commit(logs.with_name("sums"), 0)
    assert not probe(0.0)
    commit(logs, 9)
    assert not probe(0.0)
    assert probe(0.0) == "there is no new batch; the newest is clean 9, sums 0"


def test_a_checkpoint_elsewhere_is_followed_by_its_uri(
    stores: Stores, directory: FencedDirectory, tmp_path: Path
) -> None:
    probe = probe_of(f"progress:{(tmp_path / 'checkpoint').as_uri()}", stores)(directory, {})
    assert not probe(0.0)
    assert probe(0.0) == "there is no batch"
    commit(tmp_path / "checkpoint", 3)
    assert not probe(0.0)
    assert probe(0.0) == "there is no new batch; the newest is batch 3"


def test_each_run_of_the_command_is_compared_with_itself(stores: Stores, directory: FencedDirectory) -> None:
    make = probe_of("progress", stores)
    first = make(directory, {})
    assert not first(0.0)
    assert first(0.0)
    assert not make(directory, {})(0.0)


def test_a_store_without_an_answer_is_no_sign_of_a_hang(directory: FencedDirectory, stores: Stores) -> None:
    probe = probe_of("progress", stores)(directory, {})
    stores.files.close()
    with pytest.raises(StoreError):
        probe(0.0)


@pytest.mark.parametrize(
    "text",
    [
        "", "ping:x", "exec:", "exec:no-such-program-here", "exec:sh -c 'open", "http:", "http:127.0.0.1:80",
        "http:ftp://host/", "http:http://host:0/", "http:http://host:99999/", "tcp:host", "tcp:host:0",
        "tcp:host:99999", "progress:", "progress:a/b", "progress:ftp://host/x", "progressive",
    ],
)  # fmt: skip
def test_a_probe_of_another_form_is_refused_with_what_it_says(text: str, stores: Stores) -> None:
    with pytest.raises(InvalidSettings, match="liveness_probe is ") as refused:
        probe_of(text, stores)
    assert repr(text) in str(refused.value)
