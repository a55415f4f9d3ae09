"""Faults of real servers, broken on purpose one by one: what is broken, and the commands that meet it."""

import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import certifi
import requests
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from ha.outputs import layout
from ha.outputs.record import TARGET, Target
from ha.sandbox import Sandbox
from leader.layout import tree
from leader.layout.names import LeaderDirectory
from leader.layout.packed_names import written
from leader.layout.tree import NOBODY
from store.files import Files
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.unit.ha.faults.catalogue import Fault
from tests.unit.ha.faults.page import TABLE, bad, first, outcome, row

PAGE = Path(__file__).with_name("SERVER_FAULTS.md")

HEAD = """# What it says when something is wrong with a server

Made by `python -m tests.system.integration.server_faults`, which breaks one thing at a time in real HDFS and ZooKeeper
and runs the command. Do not edit it. `tests/unit/ha/faults/FAULTS.md` has what needs no servers.
Of `ha host doctor` each line is shown that it does not say while all is well, but for those that are ok; of other
commands the first sentence.
"""

DOCTOR, LIST = "host doctor orders", "job list"
PAUSE, SUBMIT = "job pause orders", "job submit orders -- true"
HOME = f"orders/{LeaderDirectory(0, NOBODY).name}"
STRANGER = {"HADOOP_USER_NAME": "mallory"}


class Stage:
    """A root of its own in the sandbox's HDFS, with one job."""

    def __init__(self, box: Sandbox) -> None:
        """Make the job."""
        self.box, known = box, box.environment()
        self.path = f"{urlsplit(known['HA_FILES']).path}-faults-{uuid.uuid4().hex[:8]}"
        self.user, self.zookeeper = known["HADOOP_USER_NAME"], known["HA_ZOOKEEPER"]
        self.namenode, self.web = (urlsplit(known[each]).netloc for each in ("HA_FILES", "HA_SANDBOX_WEBHDFS"))
        self.variables = {
            **{each: known[each] for each in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")},
            "HA_FILES": f"hdfs://{self.namenode}{self.path}",
            "HA_ZOOKEEPER": f"{self.zookeeper}/faults",
            "HA_CONTENDER": "a",
        }
        with open_files(self.variables["HA_FILES"], directory_mode=0o755) as files:
            files.call("create", lambda driver: tree.create(driver, "orders"), PATIENCE_S)

    def make(self, path: str, *, file: bool = False) -> None:
        """Make a directory with its parents, or a file; the path begins below the root, or at `/`."""
        with open_files(f"hdfs://{self.namenode}/") as files:
            at = f"{self.path}/{path}".lstrip("/") if not path.startswith("/") else path[1:]
            for end in [] if file else [each.start() for each in re.finditer("/|$", at)]:
                files.call("make", _making(at[:end]), PATIENCE_S)
            if file:
                files.call("write", lambda driver: driver.write(at, b"x"), PATIENCE_S)

    def ask(self, operation: str, path: str = "", **given: str | int) -> None:
        """Ask the NameNode for something that an administrator asks it for."""
        at = path if path.startswith("/") else f"{self.path}/{path}".rstrip("/")
        asked: dict[str, str | int] = {"op": operation, "user.name": self.user, **given}
        answer = requests.put(f"http://{self.web}/webhdfs/v1{at}", params=asked, timeout=PATIENCE_S)
        assert answer.ok, answer.text

    def said(self, command: str, place: Path, variables: dict[str, str]) -> tuple[str, str]:
        """Run a command here; returns what it prints, without what differs each time."""
        named = {"ROOT": self.path, "NAMENODE": self.namenode, "WEB": self.web, "SERVER": self.zookeeper}
        filled = {name: _filled(value, named) for name, value in variables.items()}
        fault = Fault("", _filled(command, named), filled)
        more = {":USER:supergroup": f":{self.user}:supergroup", "name=USER": f"name={self.user}"}
        port = {"port=PORT": f"port={urlsplit(f'//{self.web}').port}"}
        output, errors = outcome(fault, place, self.variables, **named, **more, **port)
        errors = errors.replace("Broken pipe (os error 32)", "RPC listener disconnected")  # whichever comes first
        errors = re.sub(r"_ssl\.c:\d+", "_ssl.c", errors)
        return output, re.sub(r"paused~\d+~[^~]+~", "paused~TIME~WHO~", errors)


def _making(path: str) -> Callable[[Files], None]:
    return lambda driver: driver.make_directory(path)


def _filled(text: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        text = text.replace(name, value)
    return text


@dataclass(frozen=True)
class ServerFault:
    """One fault, and the commands that meet it; what stands for it is as in `Fault`."""

    broken: str
    commands: tuple[str, ...]
    hurt: Callable[[Stage], object] = lambda _: None
    variables: dict[str, str] = field(default_factory=dict)
    meanwhile: Callable[[Stage], AbstractContextManager[None]] | None = None
    """What is mended afterwards: other faults need it well."""


def _quota(path: str, names: int = -1, space: int = -1) -> Callable[[Stage], object]:
    return lambda stage: stage.ask("SETQUOTA", path, namespacequota=names, storagespacequota=space)


def _snapshot(stage: Stage) -> None:
    stage.ask("ALLOWSNAPSHOT", HOME)
    stage.ask("CREATESNAPSHOT", HOME, snapshotname="s")


def _output(stage: Stage) -> str:
    """Make an output as a job has one; returns its directory."""
    where = f"{stage.path}-out"
    stage.make(where)
    for name in written(TARGET, Target(where)):
        stage.make(f"{HOME}/{layout.home('lines', where)}/{name}")
    return where


def _full_output(stage: Stage) -> None:
    stage.ask("SETQUOTA", _output(stage), namespacequota=1)


def _foreign_output(stage: Stage) -> None:
    stage.ask("SETPERMISSION", _output(stage), permission="555")
    for path in ("", "orders", HOME, f"{HOME}/record"):
        stage.ask("SETPERMISSION", path, permission="777")


@contextmanager
def _safe_mode(stage: Stage) -> Iterator[None]:
    stage.box.safe_mode(True)
    yield
    stage.box.safe_mode(False)


def _away(server: str) -> Callable[[Stage], AbstractContextManager[None]]:
    @contextmanager
    def away(stage: Stage) -> Iterator[None]:
        stage.box.kill(server)
        yield
        stage.box.start(server)
        stage.box.wait_ready(server)

    return away


def _frozen(server: str) -> Callable[[Stage], AbstractContextManager[None]]:
    @contextmanager
    def frozen(stage: Stage) -> Iterator[None]:
        stage.box.pause(server)
        yield
        stage.box.resume(server)

    return frozen


def _closed(stage: Stage) -> None:
    client = KazooClient(stage.zookeeper)
    client.start()
    client.ensure_path(stage.path, [make_digest_acl("ann", "pw", all=True)])
    client.stop()
    client.close()


def _files(uri: str) -> dict[str, str]:
    return {"HA_FILES": uri}


HDFS = [
    ServerFault("the space quota of the root is used up", (DOCTOR, SUBMIT), _quota("", space=1)),
    ServerFault("the names quota of the root is used up", (DOCTOR,), _quota("", names=1)),
    ServerFault("the space quota of the job is used up", (DOCTOR,), _quota("orders", space=1)),
    ServerFault("the names quota of the job is used up", (PAUSE,), _quota("orders", names=1)),
    ServerFault("the directory of an output takes no more names", (DOCTOR,), _full_output),
    ServerFault("this user may not write an output", (DOCTOR,), _foreign_output, STRANGER),
    ServerFault("somebody took a snapshot of the leader directory", (DOCTOR,), _snapshot),
    ServerFault("this user may not write", (DOCTOR, PAUSE, SUBMIT), variables=STRANGER),
    ServerFault("this user may not even list", (LIST,), lambda at: at.ask("SETPERMISSION", permission="700"), STRANGER),
    ServerFault("`files` is a file", (LIST,), lambda at: at.make("f", file=True), _files("hdfs://NAMENODEROOT/f")),
    ServerFault("`files` has the web port of the NameNode", (LIST,), variables=_files("hdfs://WEBROOT")),
    ServerFault("`files` has the RPC port of the NameNode", (LIST,), variables=_files("webhdfs://NAMENODEROOT")),
    ServerFault("`files` is HTTPS, and the port is not", (LIST,), variables=_files("swebhdfs://WEBROOT")),
    ServerFault("the other cluster does not answer", ("checkpoint import orders q hdfs://127.0.0.1:1/x",)),
    ServerFault("HDFS is in safe mode", (DOCTOR, PAUSE), meanwhile=_safe_mode),
    ServerFault("no DataNode runs", (DOCTOR, SUBMIT), meanwhile=_away("datanode-1")),
    ServerFault("the NameNode is frozen", (LIST,), meanwhile=_frozen("namenode-1")),
]

TLS = {"HA_ZOOKEEPER_TLS_CA": certifi.where()}
LONG = {"HA_SESSION_TIMEOUT": "600", "HA_SHORT_TTL": "700", "HA_LONG_TTL": "900"}

ZOOKEEPER = [
    ServerFault("ZooKeeper is not configured", (DOCTOR,), variables={"HA_ZOOKEEPER": ""}),
    ServerFault("`zookeeper` has the port of the NameNode", (DOCTOR,), variables={"HA_ZOOKEEPER": "NAMENODE"}),
    ServerFault("TLS is set, and the port speaks none", (DOCTOR,), variables=TLS),
    ServerFault("the session timeout is longer than the servers grant", (DOCTOR,), variables=LONG),
    ServerFault("its chroot is somebody else's", (DOCTOR,), _closed, {"HA_ZOOKEEPER": "SERVERROOT"}),
    ServerFault("ZooKeeper is frozen", (DOCTOR,), meanwhile=_frozen("zookeeper-1")),
    ServerFault("ZooKeeper is away", (DOCTOR,), meanwhile=_away("zookeeper-1")),
]

FAULTS = {"HDFS": HDFS, "ZooKeeper": ZOOKEEPER}


def made(box: Sandbox) -> str:
    """Break each, and return the page."""
    with tempfile.TemporaryDirectory() as folder:
        well = frozenset(bad(Stage(box).said(DOCTOR, Path(folder), {})[0]))
    text = HEAD
    for group, faults in FAULTS.items():
        text += TABLE.format(group) + "".join(told for fault in faults for told in _rows(fault, Stage(box), well))
    return text


def _rows(fault: ServerFault, stage: Stage, well: frozenset[str]) -> Iterator[str]:
    fault.hurt(stage)
    with (fault.meanwhile or _nothing)(stage):
        for command in fault.commands:
            with tempfile.TemporaryDirectory() as folder:
                output, errors = stage.said(command, Path(folder), fault.variables)
            found = [each for each in bad(output) if each not in well] if command == DOCTOR else [first(errors)]
            yield row(fault.broken, command, "<br>".join(found) or f"nothing: {output[-300:]}")


@contextmanager
def _nothing(_: Stage) -> Iterator[None]:
    yield


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        sandbox = Sandbox(at)
        try:
            sandbox.up()
            PAGE.write_text(made(sandbox))
        finally:
            sandbox.down(wipe=True)
