"""The guard of the port by which Spark calls Python. tests/system/spark/test_strangers.py tries it with real Spark."""

import os
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j import java_gateway

from ha.hook import entry
from ha.spark.session import callback_guard
from ha.spark.session.callback_guard import stranger
from tests.patience import PATIENCE_S
from tests.unit.ha.nobody import NOBODY, as_nobody, needs_root

PY4J = Path(java_gateway.__file__).parent
HOLD = "held = socket.socket(); held.connect(('127.0.0.1', int(sys.argv[1]))); held.recv(1)"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        yield server


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["python", "java"])
def test_this_user_is_no_stranger(server: socket.socket, family: socket.AddressFamily) -> None:
    here = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
    with socket.socket(family) as client:
        client.connect((here, server.getsockname()[1]))
        accepted, _ = server.accept()
        with accepted:
            assert stranger(accepted) is None
            client.shutdown(socket.SHUT_WR)
            assert stranger(accepted) == "A process that has gone", "whose it was is not known any more"


@needs_root
def test_another_user_is_one(server: socket.socket) -> None:
    holding = threading.Thread(target=as_nobody, args=(HOLD, server.getsockname()[1]), daemon=True)
    holding.start()
    accepted, _ = server.accept()
    with accepted:
        assert stranger(accepted) == f"The user with the number {NOBODY}"
    holding.join(PATIENCE_S)


@needs_root
def test_root_does_not_inherit_what_another_user_has_closed(server: socket.socket) -> None:
    """The kernel shows a closed connection as one of root."""
    as_nobody(HOLD.replace("held.recv(1)", "held.sendall(b'g'); held.close()"), server.getsockname()[1])
    accepted, _ = server.accept()
    with accepted:
        assert stranger(accepted) == "A process that has gone"


def test_a_kernel_that_does_not_say_is_told_of(server: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(server.getsockname()):
        accepted, _ = server.accept()
        with accepted:
            assert stranger(accepted, ["/proc/net/none"]) is None
            assert stranger(accepted, ["/proc/net/none"]) is None
    (said,) = caplog.messages
    assert said.startswith("Other users of this host may call this program, because the kernel does not say who calls:")


@pytest.mark.parametrize("packed", [False, True], ids=["installed", "archive"])
def test_a_program_that_imports_nothing_of_ours_is_guarded(tmp_path: Path, *, packed: bool) -> None:
    """Spark's own scripts have py4j in an archive."""
    ours, users, place = tmp_path / "ours", tmp_path / "users", tmp_path / "py4j.zip"
    users.mkdir()
    entry.write(ours, {callback_guard.__file__: None}, None)
    (users / "sitecustomize.py").write_text("import sys; sys.users_own = True")
    with zipfile.ZipFile(place, "w") as archive:
        for file in PY4J.rglob("*.py"):
            archive.write(file, file.relative_to(PY4J.parent))
    path = place if packed else PY4J.parent
    told = "import sys, py4j.clientserver as it; print(sys.users_own, it.PythonServer._create_connection.guarded)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ours, users, path)))}
    command = [sys.executable, "-c", f"{told}; print(it.__file__)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    said, origin = done.stdout.splitlines()
    assert (said, origin.startswith(f"{path}"), done.stderr) == ("True True", True, "")


def test_it_is_installed_once_however_often() -> None:
    told = (
        "import ha.spark, ha.spark.session.callback_guard as guard\n"
        "from ha.hook.entry import install; install(guard.changes())\n"
        "import py4j.clientserver as it; create = it.PythonServer._create_connection; install(guard.changes())\n"
        "print(create.guarded, create is it.PythonServer._create_connection, create.__closure__[0].cell_contents)"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout.startswith("True True <function PythonServer._create_connection")
