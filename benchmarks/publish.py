"""What it takes to become the leader and say where it is, beside writing the same into a file of the same HDFS.

Timed here, of a contender whose job is free (its lease is released, its connections are open):

- *claim*: from the order to contend until the grant is known: list the job, list the record, seize the lease, rename
  the leader directory. Four requests, one after the other.
- *confirm*: from there until HDFS has acknowledged one endpoint, by the rename of the old one.
- *copy*: from there until a watch of another ZooKeeper client goes off because the copy is there.
- *again*: another address of the same endpoint, until HDFS has acknowledged it.

Timed of a file: create a temporary one, write 200 bytes, close, rename it to a name that is free. So would a leader
publish that keeps its record in a file, and that is not all of it: nothing in that decides who leads.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import count
from time import perf_counter
from typing import NamedTuple
from urllib.parse import urlsplit

from hdfs.client import InsecureClient
from hdfs_native import Client as HdfsNative
from hdfs_native import WriteOptions
from kazoo.client import KazooClient

from benchmarks.contending import Contending, contending
from benchmarks.context import Context, servers
from benchmarks.drawing import bars, dots
from benchmarks.figures import Summary, middle, ratio, summary
from benchmarks.measuring import Call, no_collector
from benchmarks.result import Picture, Result, Target
from ha.sandbox.polling import until
from leader.nodes import leader_path

NAME = "publish"
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
QUICK_TIMES = 3
"""Of each in a round."""

FILE_BYTES = 200
TARGET = 50.0
COPY_WITHIN = 30.0

HAND_OVER = 0.02
"""Seconds for which a contender that has given a job back leaves it to others; usually 3, which would only be waited
for here, and is not timed."""

REPORTED = 0.3
"""Seconds: who waits for nothing writes a file in a tenth of that, and who does waits for longer."""

MS = 1e3
"""Milliseconds in a second."""


class Copies:
    """Sees the copies of leader information come and go in ZooKeeper."""

    def __init__(self, zookeeper: str) -> None:
        self._kazoo = KazooClient(zookeeper)
        self._kazoo.start()

    def await_none(self, job: str) -> None:
        """Wait until there is no copy."""
        node = CHROOT + leader_path(job)
        until(lambda: "there is one" if self._kazoo.exists(node) else None, COPY_WITHIN, f"The copy of {job} stays")

    def expect(self, job: str) -> "Expected":
        """Set a watch for the next copy; there must be none now."""
        expected = Expected()
        self._kazoo.exists(CHROOT + leader_path(job), watch=expected.come)
        return expected

    def close(self) -> None:
        """Disconnect."""
        self._kazoo.stop()
        self._kazoo.close()


class Expected:
    """A copy that is to come."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._at = 0.0

    def come(self, _: object) -> None:
        """It is there."""
        self._at = perf_counter()
        self._came.set()

    def at(self) -> float:
        """Return when it came, waiting for that if need be.

        Raises:
            TimeoutError: it does not come.
        """
        if not self._came.wait(COPY_WITHIN):
            raise TimeoutError(f"ZooKeeper had no copy after {COPY_WITHIN:g} s.")
        return self._at


class Found(NamedTuple):
    """What was measured of one of them."""

    rounds: list[Summary]
    durations: list[float]


def run(context: Context) -> Result:
    """Measure.

    Raises:
        SandboxError: the servers did not come up.
        TimeoutError: a grant, or a copy, did not come.
    """
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
                        this.setdefault(FILE + way, []).append(_timed(files[way]))
            for name, durations in this.items():
                found.setdefault(name, []).append(durations)
        return _result(found)


@contextmanager
def _free(job: str, files: str, zookeeper: str) -> Iterator[Contending]:
    """A contender of a job that exists, has been led once, and is free."""
    settings = {"files": files, "zookeeper": zookeeper, "snapshots": "off", "hand_over": str(HAND_OVER)}
    with contending(job, settings) as contender:
        contender.confirm(contender.claim(), {"jobmaster": "host:6123"})
        contender.release()
        yield contender


def _lead(contender: Contending, job: str, copies: Copies) -> dict[str, float]:
    """Lead once; return what each step took, in seconds from the beginning but for the last."""
    time.sleep(2 * HAND_OVER)
    copies.await_none(job)
    expected = copies.expect(job)
    began = perf_counter()
    session_id = contender.claim()
    granted = perf_counter()
    contender.confirm(session_id, {"jobmaster": "host:6123"})
    published = perf_counter()
    copied = expected.at()
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
    """Write a file with hdfs-native, and give it its name."""
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
    """The same with HdfsCLI."""
    parts, number = urlsplit(root), count()
    client = InsecureClient(f"http://{parts.netloc}", user=user)
    client.makedirs(f"{parts.path}-files")

    def write() -> None:
        name = f"{parts.path}-files/web-{next(number)}"
        client.write(f"{name}.new", bytes(FILE_BYTES))
        client.rename(f"{name}.new", name)

    return write


def _timed(call: Call) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def _result(found: Mapping[str, Sequence[Sequence[float]]]) -> Result:
    rounds = {name: [summary(each) for each in durations] for name, durations in found.items()}
    names = [name + way for way in (RPC, WEB) for name in (CLAIM, PUBLISHED, COPIED, AGAIN, FILE)]
    middles = {name: middle(rounds[name]) for name in names}
    faster = {name: ratio(rounds[FILE + way], rounds[name]) for way in (RPC, WEB) for name in names if way in name}
    return Result(
        NAME,
        TITLE,
        ("what", "p50 (ms)", "p99 (ms)", "per second", "times faster than the file"),
        tuple((name, each.p50 * MS, each.p99 * MS, each.per_second, faster[name]) for name, each in middles.items()),
        tuple(
            Target(f"Claim and confirm, in HDFS, beside a file{way}", TARGET, faster[PUBLISHED + way], "x", False)
            for way in (RPC, WEB)
        ),
        (
            "Every figure is the median of what the rounds say. All take turns; in a round the slowest is its p99.",
            "Claim: list the job, list the record, seize the lease, rename the leader directory.",
            "Confirm: the rename of one endpoint, which HDFS has acknowledged.",
            "Confirm again: another address of the same endpoint.",
            "Copy: the watch of another client goes off, because ZooKeeper has the record.",
            "A file: create it under another name, write 200 bytes, close, rename it to a name that is free.",
            "Connections are open and the job is free before anything is timed: a takeover must notice a death first.",
            *(_waited(found, way) for way in (RPC, WEB)),
            "One DataNode takes the file. In a cluster it goes through three, and claim and confirm through none.",
        ),
        _pictures(found, middles, names),
        {name: {"rounds_seconds": [list(each) for each in durations]} for name, durations in found.items()}
        | {"summaries": {name: [asdict(each) for each in rounds[name]] for name in names}},
    )


def _waited(found: Mapping[str, Sequence[Sequence[float]]], way: str) -> str:
    durations = [seconds for each in found[FILE + way] for seconds in each]
    share = sum(seconds > REPORTED for seconds in durations) / len(durations)
    return (
        f"{share:.0%} of the files{way} took more than {REPORTED:g} s: the DataNode had not reported their block when "
        "they were closed, and the client asks again after 0.4 s or more. The median is that of whichever were more."
    )


def _pictures(
    found: Mapping[str, Sequence[Sequence[float]]], middles: Mapping[str, Summary], names: Sequence[str]
) -> tuple[Picture, ...]:
    title, every = "Median time to publish", "Every single time"
    return (
        Picture("medians", title, bars(title, "ms", {name: middles[name].p50 * MS for name in names}, log=True)),
        Picture(
            "dots",
            every,
            dots(
                every,
                "ms",
                {name: [s * MS for durations in found[name] for s in durations] for name in names},
                log=True,
            ),
        ),
    )
