"""Participants: real ``ha run`` and ``ha host daemon`` processes of one job, with faults."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import ha
from ha.config.sources import load
from ha.config.stores import Stores
from ha.errors import NoLeader, Unreachable
from ha.history.events import Ended
from leader.job.admin import JobAdmin
from leader.job.grants import PastGrant
from leader.layout import contact
from leader.layout.contact import GREETING_BYTES, ContactAddress
from leader.layout.information import Record
from leader.layout.lease import Lease
from leader.layout.names import RECORD, LeaderDirectory
from leader.layout.znodes import session_path
from store.clock import now
from store.errors import NotFound
from store.zookeeper import Get
from tests.patience import PATIENCE_S
from tests.system.integration.judged import judge
from tests.system.integration.waiting import until

HA = str(Path(sys.executable).with_name("ha"))
WORKER = str(Path(__file__).with_name("worker.py"))

QUICK = {"session_timeout": "4", "short_ttl": "4", "long_ttl": "20", "hand_over": "1", "stop_grace": "3"}
"""Durations that make a test quick, about as small as they may be: for tests that wait for the end of one."""

LASTING = {**QUICK, "session_timeout": "30", "short_ttl": "30", "long_ttl": "45", "stop_grace": "20"}
"""Durations that no busy machine exceeds: for tests in which nothing has to end by itself."""


def environment(settings: dict[str, str], **more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
    return {
        **inherited,
        "HA_SNAPSHOTS": "off",
        **{f"HA_{name.upper()}": value for name, value in settings.items()},
        **more,
    }


def new_job() -> str:
    """Return an unused name of a job: a borrowed sandbox keeps the jobs of earlier runs."""
    return f"job-{uuid.uuid4().hex[:8]}"


def state_of(pid: int) -> str:
    """Return the kernel's letter for the state of a process; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def runs(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    return state_of(pid) not in ("", "Z", "X")


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started: a sidecar starts its guard on a thread of its own."""
    try:
        lists = [each.read_text(encoding="ascii") for each in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(each) for each in " ".join(lists).split()]


def connected_to(port: int) -> bool:
    """Whether a process of this host has a connection to that port and has read all its data."""
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, _, there, state, queues, *_ = line.split()
        if there.endswith(f":{port:04X}") and state == "01" and queues.endswith(":00000000"):
            return True
    return False


class Participant:
    def __init__(self, team: "Team", name: str, command: list[str], **more: str) -> None:
        self.name = name
        self._team = team
        self._log = team.folder / f"{name}.log"
        options = ["--contender", name, "--endpoint", f"jobmaster={name}:6123", "--log-format", "json"]
        verb = ["run", team.job, *options, "--", *command] if command else ["host", "daemon", team.job, *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [HA, *verb], env=environment(team.settings, **more), cwd=team.folder, stderr=log, stdout=log
            )
        self.pid = self._process.pid

    def sentences(self) -> list[str]:
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["message"] if line.startswith("{") else line for line in lines]

    def said(self, text: str) -> list[str]:
        return [each for each in self.sentences() if text in each]

    @property
    def guard(self) -> int:
        """Process id of the guard; 0 if there is none."""
        found = children(self.pid)
        return found[0] if found else 0

    @property
    def command(self) -> int:
        """Process id of the command; 0 if none runs."""
        found = children(self.guard) if self.guard else []
        return found[0] if found and runs(found[0]) else 0

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> float:
        at = now()
        self._process.kill()
        killed = now()  # it does nothing from here on, whenever that is noticed
        self._ended(killed)
        return at

    def terminate(self) -> int:
        self._process.terminate()
        return self._ended()

    def freeze(self, *pids: int) -> None:
        """Stop these processes; by default only the sidecar."""
        for pid in pids or (self.pid,):
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: state_of(pid) == "T", f"process {pid} is stopped")  # type: ignore[misc]

    def wake(self, *pids: int) -> None:
        for pid in pids or (self.pid,):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        commands = [each for guard in children(self.pid) for each in (*children(guard), guard)]
        if self.alive:
            self._process.kill()
            self._ended()
        for pid in commands:
            self.wake(pid)
        until(lambda: not any(map(runs, commands)), f"the commands of {self.name} have ended")

    def _ended(self, at: float | None = None) -> int:
        code = self._process.wait(PATIENCE_S)
        self._team.history.write(Ended(now() if at is None else at, "", self.name))
        return code


class Team:
    """The participants of one job. When the team has ended, the history of all of them is judged.

    Attributes:
        forged: session ids that the test itself has put into ZooKeeper, where readers may find them for a while.
    """

    def __init__(self, job: str, folder: Path, settings: dict[str, str]) -> None:
        self.job = job
        self.folder = folder
        self.settings = {**QUICK, **settings, "history": str(folder / f"{job}.history")}
        self.forged: set[str] = set()
        self._stores = Stores(load(self.settings))
        self.files = self._stores.files
        self.history = self._stores.history
        self.client = ha.connect(**self.settings)
        self._operations = JobAdmin(self.files, self._stores.zookeeper, 5.0)
        self._participants: dict[str, Participant] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._participants.values():
            each.end()
        self.client.close()
        self._stores.close()
        judge(Path(self.settings["history"]), self.settings["files"], self.job, self.forged)

    def __getitem__(self, name: str) -> Participant:
        return self._participants[name]

    # --- participants

    def run(self, *names: str, writes: bool = False, **more: str) -> None:
        """Start a sidecar for each name; with ``writes`` their commands write below the leader directory."""
        for name in names:
            command = [sys.executable, WORKER, str(self.folder / f"{self.job}.beats"), *(["writes"] if writes else [])]
            self._participants[name] = Participant(self, name, command, **more)

    def supervise(self, name: str, *command: str, **more: str) -> None:
        self._participants[name] = Participant(self, name, list(command), **more)

    def serve(self, *names: str) -> None:
        for name in names:
            self._participants[name] = Participant(self, name, [])

    def start(self, first: str, *others: str, writes: bool = False) -> Participant:
        """Start sidecars, wait until the first leads and the others stand by, and return the first."""
        self.run(first, writes=writes)
        self.led_by(first)
        self.run(*others, writes=writes)
        until(lambda: all(self[name].said("contending as") for name in others), "they contend")
        if self.settings.get("zookeeper"):
            self.settle()
        return self[first]

    # --- the leader

    def leader(self) -> str:
        """Return the leader's published name; empty if nobody leads, or no store answers."""
        try:
            return self.client.leader(self.job).endpoints["jobmaster"].partition(":")[0]
        except (NoLeader, Unreachable):
            return ""

    def led_by(self, *names: str, seconds: float = PATIENCE_S) -> str:
        return until(lambda: found if (found := self.leader()) in names else "", f"one of {names} leads", seconds)

    def lease(self) -> tuple[LeaderDirectory, Lease]:
        return self._operations.lease(self.job)

    def mode(self) -> str:
        return self.lease()[1].mode.value

    def settle(self) -> LeaderDirectory:
        until(lambda: self.mode() == "zookeeper", "ZooKeeper attests the lease")
        return self.lease()[0]

    def contact(self) -> ContactAddress | None:
        """Return where the leader's process listens, as the job's record says; None if it says nothing."""
        directory = self.lease()[0]
        return contact.holders(Record.parse(self.entries(f"{directory.name}/{RECORD}")), directory)

    def lives(self, token: str) -> bool:
        try:
            self._session(token)
        except NotFound:
            return False
        return True

    def _session(self, token: str) -> bytes:
        zookeeper = self._stores.zookeeper
        assert zookeeper is not None
        zookeeper.start()
        zookeeper.wait(PATIENCE_S)
        data, _ = zookeeper.call(Get(session_path(token)), PATIENCE_S)
        return data

    def settle_watched(self) -> LeaderDirectory:
        """Wait until somebody is connected to the leader's process as well, and has read its greeting.

        The kernel connects before the leader accepts. The leader greets in the order in which they came: once it has
        greeted this process, the standby's greeting has arrived.
        """
        directory = self.settle()
        where = until(self.contact, "the leader says where it listens")
        assert where is not None
        until(lambda: connected_to(where.port), "a standby is connected to the leader's process")
        with socket.create_connection((where.host, where.port), PATIENCE_S) as behind_it:
            assert behind_it.recv(GREETING_BYTES), "the leader greets"
        until(lambda: connected_to(where.port), "the standby has read its greeting")
        return directory

    def contenders(self) -> list[str]:
        return self._operations.contenders(self.job) or []

    def grants(self) -> list[PastGrant]:
        return self._operations.history(self.job)

    def reason(self) -> str:
        """Why the present leader got the lease; it writes the line of its grant after others can see it lead."""
        epoch = self.lease()[0].epoch
        grants = until(lambda: [each for each in self.grants() if each.epoch == epoch], "the line of its grant")
        return grants[-1].reason

    def entries(self, path: str = "") -> set[str]:
        listed = self.files.call("test", lambda driver: driver.list(f"{self.job}/{path}".rstrip("/")), PATIENCE_S)
        return {each.name for each in listed}

    # --- the work of their commands

    def beats(self) -> list[dict[str, Any]]:
        file = self.folder / f"{self.job}.beats"
        text = file.read_text(encoding="ascii") if file.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def check_one_at_a_time(self) -> list[int]:
        """No command ran while another one did: each epoch's last beat is older than the next one's first."""
        beats = sorted(self.beats(), key=lambda beat: beat["at"])
        epochs = [epoch for epoch, _ in groupby(beat["epoch"] for beat in beats)]
        assert epochs == sorted(set(epochs))
        return epochs

    # --- the command line

    def ha(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [HA, *arguments],
            env=environment(self.settings, **more),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
