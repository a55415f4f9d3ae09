"""Benchmark of lookups: durations from a snapshot, ZooKeeper and HDFS, beside one bare request to the same server."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import NamedTuple
from urllib.parse import urlsplit

from hdfs.client import InsecureClient
from hdfs_native import Client as HdfsNative
from kazoo.client import KazooClient

from benchmarks.context import Context, servers
from benchmarks.drawing import shares
from benchmarks.figures import Summary, middle, ratio, text
from benchmarks.measuring import Call, Contestant, compare, throughput
from benchmarks.programs import await_answer, client, ha_program
from benchmarks.result import Picture, Result, at_most, table
from ha.client import Client
from ha.sandbox import Sandbox
from leader.layout.names import RECORD, LeaderDirectory
from leader.layout.znodes import leader_path
from leader.lookup.answers import Answer, Source

TITLE = "A lookup, beside one bare request"

JOB = "orders"
CHROOT = "/hybrid-ha"

SNAPSHOT = "here: snapshot"
ZOOKEEPER = "here: ZooKeeper"
HDFS = "here: HDFS (RPC)"
WEBHDFS = "here: HDFS (WebHDFS)"
KAZOO = "bare kazoo get"
NATIVE = "bare hdfs-native list"
BOUNDED = "hdfs-native list within 2 s"
HDFSCLI = "bare hdfs list"

BARE = {ZOOKEEPER: KAZOO, HDFS: NATIVE, WEBHDFS: HDFSCLI}  # The bare request to compare each lookup with
CALLS = {
    SNAPSHOT: 20_000,
    **dict.fromkeys((ZOOKEEPER, KAZOO), 3_000),
    **dict.fromkeys((HDFS, NATIVE, BOUNDED), 2_000),
    **dict.fromkeys((WEBHDFS, HDFSCLI), 1_000),
}
"""Calls in a round: enough for a p99.9."""

TIMEOUT = 2.0  # Seconds; a lookup's default. hdfs-native waits for ever, so another thread must wait for it.
QUICK_SHARE = 10
THREADS = 8
SECONDS = 3.0
QUICK_SECONDS = 0.5

US = 1e6  # Microseconds in a second
SNAPSHOT_TARGET_US = 15.0
ZOOKEEPER_TARGET = 1.2
HDFS_TARGET = 1.3


class Found(NamedTuple):
    """Measurements of one contestant."""

    rounds: list[Summary]
    last: list[float]
    together: float


class Asked:
    """A lookup, and its number of answers from another source than the wanted one."""

    def __init__(self, asked: Client, source: Source) -> None:
        self._leader = asked.leader
        self._source = source
        self.elsewhere = 0

    def __call__(self) -> Answer:
        answer = self._leader(JOB)
        if answer.source is not self._source:
            self.elsewhere += 1
        return answer


def run(context: Context) -> Result:
    with servers(context) as sandbox, _led(sandbox, context) as settings, ExitStack() as stack:
        lookups = _lookups(settings, sandbox.environment()["HA_SANDBOX_WEBHDFS"], stack)
        calls: dict[str, Call] = {**lookups, **_bare(sandbox, _directory(lookups[HDFS]), stack)}
        share = QUICK_SHARE if context.quick else 1
        contestants = [Contestant(name, calls[name], times // share) for name, times in CALLS.items()]
        measured = compare(contestants, context.repeats(), context.say)
        seconds = QUICK_SECONDS if context.quick else SECONDS
        found: dict[str, Found] = {}
        for name, call in calls.items():
            context.say(f"{THREADS} threads: {name}")
            found[name] = Found(*measured[name], throughput(call, THREADS, seconds))
        return _result(found, {name: lookup.elsewhere for name, lookup in lookups.items()})


@contextmanager
def _led(sandbox: Sandbox, context: Context) -> Iterator[dict[str, str]]:
    """Start a daemon that leads the job and is this host's agent; return the settings of readers."""
    stores = sandbox.environment()
    snapshots = str((context.folder / "snapshots").absolute())
    settings = {"files": stores["HA_FILES"], "zookeeper": stores["HA_ZOOKEEPER"], "snapshots": snapshots}
    daemon = ["host", "daemon", JOB, "--endpoint", "jobmaster=host:6123"]
    with ha_program(daemon, settings, context.folder / "daemon.log"):
        context.say("Waiting for a leader")
        yield settings


def _lookups(settings: Mapping[str, str], webhdfs: str, stack: ExitStack) -> dict[str, Asked]:
    """Make a client for each source, and wait until it answers from that source."""
    clients = {
        SNAPSHOT: (client(settings), Source.SNAPSHOT),
        ZOOKEEPER: (client(settings, snapshots="off"), Source.ZOOKEEPER),
        HDFS: (client(settings, snapshots="off", zookeeper=""), Source.HDFS),
        WEBHDFS: (client(settings, snapshots="off", zookeeper="", files=webhdfs), Source.HDFS),
    }
    for name in (HDFS, WEBHDFS):
        _unpaced(clients[name][0])
    for asked, source in clients.values():
        stack.callback(asked.close)
        await_answer(asked, JOB, source)
    return {name: Asked(*each) for name, each in clients.items()}


def _unpaced(asked: Client) -> None:
    """Make the client ask HDFS at each lookup, as at the first one: most answers would come from memory otherwise."""
    asked._reader.rate_limit.try_acquire = lambda _: True  # type: ignore[assignment,method-assign]  # noqa: SLF001


def _directory(lookup: Asked) -> str:
    answer = lookup()
    return f"{JOB}/{LeaderDirectory(answer.epoch, answer.session_id).name}/{RECORD}"


def _bare(sandbox: Sandbox, record: str, stack: ExitStack) -> dict[str, Call]:
    """Send the same requests to the same servers with the same libraries, as their manuals do."""
    stores = sandbox.environment()
    kazoo = KazooClient(stores["HA_ZOOKEEPER"])
    kazoo.start()
    stack.callback(kazoo.close)
    stack.callback(kazoo.stop)
    node = CHROOT + leader_path(JOB)
    rpc, web = urlsplit(stores["HA_FILES"]), urlsplit(stores["HA_SANDBOX_WEBHDFS"])
    native = HdfsNative(f"hdfs://{rpc.netloc}")
    cli = InsecureClient(f"http://{web.netloc}", user=stores["HADOOP_USER_NAME"])
    threads = stack.enter_context(ThreadPoolExecutor(THREADS))

    def listed() -> object:
        return list(native.list_status(f"{rpc.path}/{record}"))

    return {
        KAZOO: lambda: kazoo.get(node),
        NATIVE: listed,
        BOUNDED: lambda: threads.submit(listed).result(TIMEOUT),
        HDFSCLI: lambda: cli.list(f"{web.path}/{record}"),
    }


def _result(found: Mapping[str, Found], elsewhere: Mapping[str, int]) -> Result:
    middles = {name: middle(each.rounds) for name, each in found.items()}
    ratios = {name: ratio(found[name].rounds, found[bare].rounds) for name, bare in BARE.items()}
    return Result(
        *table(
            {
                "lookup": str,
                "p50 (µs)": lambda name: middles[name].p50 * US,
                "p99 (µs)": lambda name: middles[name].p99 * US,
                "p99.9 (µs)": lambda name: middles[name].p999 * US,
                "per second, 1 thread": lambda name: middles[name].per_second,
                f"per second, {THREADS} threads": lambda name: found[name].together,
                "x bare (p50)": lambda name: ratios.get(name, ""),
            },
            middles,
        ),
        (
            at_most("A snapshot is read in microseconds", SNAPSHOT_TARGET_US, middles[SNAPSHOT].p50 * US, "µs"),
            at_most("A lookup in ZooKeeper, beside a bare kazoo get", ZOOKEEPER_TARGET, ratios[ZOOKEEPER], "x"),
            at_most("A lookup in HDFS, beside a bare hdfs-native list", HDFS_TARGET, ratios[HDFS], "x"),
        ),
        _notes(elsewhere, ratio(found[HDFS].rounds, found[BOUNDED].rounds)),
        (_picture(found),),
        {
            name: {
                "rounds": [asdict(each) for each in one.rounds],
                "last_round_seconds": sorted(one.last),
                "per_second_together": one.together,
                "answers_from_elsewhere": elsewhere.get(name, 0),
            }
            for name, one in found.items()
        },
    )


def _notes(elsewhere: Mapping[str, int], bounded: float) -> tuple[str, ...]:
    others = ", ".join(f"{name} {count}" for name, count in elsewhere.items())
    return (
        "A daemon on the same machine writes the snapshot; each lookup opens and reads its file.",
        f"hdfs-native has no deadline; beside a list in an executor, which has one, a lookup is {text(bounded)} x.",
        "Each lookup asks HDFS here. In a program most answers come from memory: it may ask every 2.4 s.",
        f"Answers from another source than the row names: {others}.",
    )


def _picture(found: Mapping[str, Found]) -> Picture:
    tails = {name: [seconds * US for seconds in each.last] for name, each in found.items()}
    title = "Share of the lookups of one round that took no longer"
    return Picture("shares", title, shares(title, "µs", tails, log=True))
