"""Benchmark of a claim and its publication, beside writing the same data into a file of the same HDFS."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import count
from time import perf_counter
from typing import TypeVar
from urllib.parse import urlsplit

from hdfs.client import InsecureClient
from hdfs_native import Client as HdfsNative
from hdfs_native import WriteOptions
from kazoo.client import KazooClient

from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.figures import middle, ratio, summary
from benchmarks.measuring import Call, no_collector, timed
from benchmarks.result import Result, at_least
from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.notices import GrantNotice, Notice, NoticeQueue, PublicationNotice
from ha.sandbox.polling import until
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.layout.information import LeaderInformation
from leader.layout.znodes import leader_path

TITLE = "Claim and confirm, beside writing a file"

CHROOT = "/hybrid-ha"
WEB = " (WebHDFS)"
RPC = " (RPC)"
CLAIM = "here: claim"
PUBLISHED = "here: claim + confirm"
COPIED = "here: claim + confirm + copy"
AGAIN = "here: confirm again"
FILE = "file"

TIMES = 10
QUICK_TIMES = 3  # Publications of each contestant in a round
FILE_BYTES = 200
TARGET = 50.0
COPY_WITHIN = 30.0

HAND_OVER = 0.02
"""Seconds for which a contender leaves a released job to others. The default, 3, would only add untimed waiting."""

REPORTED = 0.3
"""Seconds. Without a wait for the DataNode's report a file takes a tenth of this; with a wait it takes longer."""

MS = 1e3  # Milliseconds in a second


Kind = TypeVar("Kind", bound=Notice)

PATIENCE = 30.0  # Seconds to wait for any notice; a later one counts as missing
ASKED = 5.0  # Seconds to wait for an answer of the contender's thread, which never blocks


class Contending:
    """One contender of one job; the benchmark reads its notices."""

    def __init__(self, job: str, settings: Mapping[str, str]) -> None:
        loaded = load(settings)
        self._job = job
        self._stores = Stores(loaded)
        self._notices = NoticeQueue()
        self._runtime = Runtime("bench", loaded.leadership.timing, self._stores.files, self._stores.zookeeper)
        self._contender = Contender.make(self._runtime, loaded.leadership.contender, loaded.leadership.timing)
        self._runtime.attach(self._contender)
        self._runtime.ask(lambda: self._contender.join(job, self._notices), ASKED)

    def claim(self) -> str:
        """Contend until granted; return the session id."""
        self._runtime.post(lambda: self._contender.contend(self._job))
        return self._notice(GrantNotice).grant.session_id

    def confirm(self, session_id: str, endpoints: dict[str, str]) -> LeaderInformation:
        """Publish these endpoints; return the record once HDFS holds it."""
        self._runtime.post(lambda: self._contender.confirm(self._job, session_id, endpoints))
        return self._notice(PublicationNotice).information

    def release(self) -> None:
        """Release the lease, and wait until it is free."""
        self._runtime.post(lambda: self._contender.release(self._job))
        what = f"The lease of {self._job} is not released"
        until(lambda: "it is still held" if self._busy() else None, PATIENCE, what)

    def close(self) -> None:
        self._runtime.close()
        self._stores.close()

    def _busy(self) -> bool:
        return self._runtime.ask(lambda: self._contender.participants[self._job].busy, ASKED)

    def _notice(self, kind: type[Kind]) -> Kind:
        while not isinstance(notice := self._notices.get(PATIENCE), kind):
            if notice is None:
                raise TimeoutError(f"{kind.__name__} of job {self._job!r} did not come in {PATIENCE:g} s.")
        return notice


@contextmanager
def contending(job: str, settings: Mapping[str, str]) -> Iterator[Contending]:
    made = Contending(job, settings)
    try:
        yield made
    finally:
        made.close()


class Copies:
    """Watches the copies of leader information in ZooKeeper."""

    def __init__(self, zookeeper: str) -> None:
        self._kazoo = KazooClient(zookeeper)
        self._kazoo.start()

    def await_none(self, job: str) -> None:
        node = CHROOT + leader_path(job)
        until(lambda: "there is one" if self._kazoo.exists(node) else None, COPY_WITHIN, f"The copy of {job} remains")

    def expect(self, job: str) -> "Future[float]":
        """Return when the next copy appears; there must be no copy now."""
        expected = Future[float]()
        self._kazoo.exists(CHROOT + leader_path(job), watch=lambda _: expected.set_result(perf_counter()))
        return expected

    def close(self) -> None:
        self._kazoo.stop()
        self._kazoo.close()


def run(context: Context) -> Result:
    with servers(context) as sandbox, ExitStack() as stack:
        stores = sandbox.environment()
        copies = Copies(stores["HA_ZOOKEEPER"])
        stack.callback(copies.close)
        leaders = {
            RPC: stack.enter_context(_free("publish-rpc", stores["HA_FILES"], stores["HA_ZOOKEEPER"])),
            WEB: stack.enter_context(_free("publish-web", stores["HA_SANDBOX_WEBHDFS"], stores["HA_ZOOKEEPER"])),
        }
        jobs = {RPC: "publish-rpc", WEB: "publish-web"}
        files = {RPC: _native(stores["HA_FILES"]), WEB: _cli(stores["HA_SANDBOX_WEBHDFS"], stores["HADOOP_USER_NAME"])}
        found: dict[str, list[list[float]]] = {}
        for number in range(context.repeats()):
            context.say(f"Round {number + 1} of {context.repeats()}")
            this: dict[str, list[float]] = {}
            with no_collector():
                for _ in range(QUICK_TIMES if context.quick else TIMES):
                    for way in (RPC, WEB):
                        for name, seconds in _lead(leaders[way], jobs[way], copies).items():
                            this.setdefault(name + way, []).append(seconds)
                        this.setdefault(FILE + way, []).extend(timed(files[way], 1))
            for name, durations in this.items():
                found.setdefault(name, []).append(durations)
        return _result(found)


@contextmanager
def _free(job: str, files: str, zookeeper: str) -> Iterator[Contending]:
    """Return a contender of a free job that exists and has been led once."""
    settings = {"files": files, "zookeeper": zookeeper, "snapshots": "off", "hand_over": str(HAND_OVER)}
    with contending(job, settings) as contender:
        contender.confirm(contender.claim(), {"jobmaster": "host:6123"})
        contender.release()
        yield contender


def _lead(contender: Contending, job: str, copies: Copies) -> dict[str, float]:
    """Lead once; return the duration of each step in seconds: from the start, except for the last step."""
    time.sleep(2 * HAND_OVER)
    copies.await_none(job)
    expected = copies.expect(job)
    began = perf_counter()
    session_id = contender.claim()
    granted = perf_counter()
    contender.confirm(session_id, {"jobmaster": "host:6123"})
    published = perf_counter()
    copied = expected.result(COPY_WITHIN)
    once_more = perf_counter()
    contender.confirm(session_id, {"jobmaster": "host:6124"})
    again = perf_counter()
    contender.release()
    return {
        CLAIM: granted - began,
        PUBLISHED: published - began,
        COPIED: max(published, copied) - began,
        AGAIN: again - once_more,
    }


def _native(root: str) -> Call:
    """Write a file with hdfs-native, and rename it to its final name."""
    parts, number = urlsplit(root), count()
    client = HdfsNative(f"hdfs://{parts.netloc}")
    client.mkdirs(f"{parts.path}-files")

    def write() -> None:
        name = f"{parts.path}-files/native-{next(number)}"
        writer = client.create(f"{name}.new", WriteOptions())
        writer.write(bytes(FILE_BYTES))
        writer.close()
        client.rename(f"{name}.new", name)

    return write


def _cli(root: str, user: str) -> Call:
    """Do the same with HdfsCLI."""
    parts, number = urlsplit(root), count()
    client = InsecureClient(f"http://{parts.netloc}", user=user)
    client.makedirs(f"{parts.path}-files")

    def write() -> None:
        name = f"{parts.path}-files/web-{next(number)}"
        client.write(f"{name}.new", bytes(FILE_BYTES))
        client.rename(f"{name}.new", name)

    return write


def _result(found: Mapping[str, Sequence[Sequence[float]]]) -> Result:
    rounds = {name: [summary(each) for each in durations] for name, durations in found.items()}
    names = [name + way for way in (RPC, WEB) for name in (CLAIM, PUBLISHED, COPIED, AGAIN, FILE)]
    middles = {name: middle(rounds[name]) for name in names}
    faster = {name: ratio(rounds[FILE + way], rounds[name]) for way in (RPC, WEB) for name in names if way in name}
    every = {name: [seconds * MS for durations in found[name] for seconds in durations] for name in names}
    return Result(
        ("what", "p50 (ms)", "p99 (ms)", "per second", "times faster than the file"),
        tuple((name, each.p50 * MS, each.p99 * MS, each.per_second, faster[name]) for name, each in middles.items()),
        tuple(
            at_least(f"Claim and confirm, in HDFS, beside a file{way}", TARGET, faster[PUBLISHED + way], "x")
            for way in (RPC, WEB)
        ),
        (
            "Claim: list the job, list the record, seize the lease, rename the leader directory.",
            "Confirm: rename one endpoint, until HDFS has acknowledged it.",
            "Confirm again: another address of the same endpoint.",
            "Copy: ZooKeeper has the record, and another client's watch is triggered.",
            "File: create it under another name, write 200 bytes, close, rename it to a free name.",
            "When the clock starts, connections are open and the job is free. A takeover must first notice a death.",
            *(_waited(found, way) for way in (RPC, WEB)),
        ),
        (dotted("dots", "Every single time", "ms", every, log=True),),
        {name: {"rounds_seconds": [list(each) for each in durations]} for name, durations in found.items()}
        | {"summaries": {name: [asdict(each) for each in rounds[name]] for name in names}},
    )


def _waited(found: Mapping[str, Sequence[Sequence[float]]], way: str) -> str:
    durations = [seconds for each in found[FILE + way] for seconds in each]
    share = sum(seconds > REPORTED for seconds in durations) / len(durations)
    return (
        f"{share:.0%} of the files{way} took more than {REPORTED:g} s: the DataNode had not reported their block when "
        "they were closed, and the client asks again after 0.4 s or more. The median belongs to the larger group."
    )
