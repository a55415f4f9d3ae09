"""Counter of what work costs the stores: published batches, requests by name, replication and outputs.

The library's own code works on a directory of this host, and each operation counts as what it costs a NameNode
(:data:`store.counting.REQUESTS`). What pyarrow copies for a replication counts as :data:`BULK` says. The mirror in
ZooKeeper, and what an election does about a request, run in the simulator's virtual time.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from pyarrow.fs import LocalFileSystem

from benchmarks.scale.costs import Count, Rounds, WorkCosts
from ha.checkpoints.trees import Tree
from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.fenced_rename import LeaderFiles
from ha.leadership.leadership import Leadership, SidecarHolder
from ha.outputs import layout
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.record import Record
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.replication.replicator import Budget, ReplicaSource, Replicator
from ha.verbs.asking import ask
from leader.contender.mirror_runner import MirrorRunner
from leader.job.admin import JobAdmin
from leader.job.request_folder import KEPT, State
from leader.job.request_folder import Requests as NamedRequests
from leader.layout.lease import Lease
from leader.layout.names import RECORD, SPARK, LeaderDirectory, newest
from leader.layout.znodes import checkpoints_path
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles
from store.local import LocalFiles
from store.zookeeper import Connection, Get, Operation, Stat
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.world import World
from tests.unit.benchmarks.requests import SETTINGS, Counted, Requests
from tests.unit.ha.checkpoints import simulated_spark
from tests.unit.ha.checkpoints.simulated_spark import HDFS, SimulatedSpark
from tests.unit.ha.led import Led

JOB, QUERY = "orders", "daily"
READS = frozenset({"list", "read"})
WARM, CYCLE = 12, 20
"""Batches before counting, and counted: their mean is that of whole cycles of Spark's compactions and snapshots."""

BULK = {"open": 2, "create": 3}
"""Requests for a file that pyarrow opens to read, or writes: ``test_counting_work.py`` has a NameNode count them."""


class Told:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __call__(self, operation: str, requests: int) -> None:
        self.counted[f"namenode {'reads' if operation in READS else 'writes'}"] += requests

    def files(self, root: Path) -> BoundedFiles:
        return BoundedFiles(
            lambda: CountedFiles(LocalFiles(root, durable=False), REQUESTS["hdfs"], self), uri=root.as_uri()
        )

    def take(self) -> Count:
        found, self.counted = self.counted, Counter()
        return {kind: float(number) for kind, number in sorted(found.items())}


def sent(requests: Requests) -> Count:
    found = Counter(kind for _, kind in requests.sent)
    requests.sent.clear()
    return {kind: float(number) for kind, number in sorted(found.items())}


def mean(counts: list[Count]) -> Count:
    kinds = sorted({kind for each in counts for kind in each})
    return {kind: round(value, 2) for kind in kinds if (value := fmean(each.get(kind, 0.0) for each in counts))}


def between(one: Count, two: Count, steps: int = 1) -> tuple[Count, Count]:
    """Return what is fixed and what each of some more things costs, by the costs with a thing and with more."""
    kinds = sorted({*one, *two})
    each = {kind: (two.get(kind, 0.0) - one.get(kind, 0.0)) / steps for kind in kinds}
    return (
        {kind: round(value, 2) for kind in kinds if (value := one.get(kind, 0.0) - each[kind])},
        {kind: round(value, 2) for kind, value in each.items() if value},
    )


def led(root: Path, job: str = JOB) -> LeaderDirectory:
    made = Led(root)
    made.claim(job, "a:1")
    found = newest([entry.name for entry in made.files.list(job)])
    assert found is not None
    return found


class _Mirrored(Counted):
    def __init__(self) -> None:
        world = World(0)
        super().__init__(world, "driver", Namespace(), Ensemble(world, tick=2.0, size=3), SETTINGS.leadership.timing)
        self.mirror = MirrorRunner(cast("Any", self), checkpoints_path(JOB))
        self.zookeeper.connected.append(self.mirror.connected)
        self.zookeeper.start()
        world.run(5)

    def post(self, callback: Callable[[], object]) -> None:
        callback()

    def take(self) -> Count:
        self.world.run(5)
        return sent(self.requests)


def batch_and_look() -> tuple[Count, Count]:
    """Return the requests of a published batch, and those of a sidecar's look that finds no new one."""
    with TemporaryDirectory() as made:
        root, told, driver = Path(made), Told(), _Mirrored()
        leader = led(root)
        stores = Stores(load({"files": root.as_uri(), "snapshots": "off"}, {}))
        stores.files = told.files(root)
        leadership = Leadership(
            JOB, leader, stores, cast("Any", driver), SidecarHolder(JOB, lambda: True), driver.mirror
        )
        publisher = CheckpointPublisher(leadership, poll=True)
        log = root / JOB / leader.name / SPARK / QUERY / "commits"
        log.mkdir(parents=True)
        for batch in range(WARM):  # the first ones make folders, and fill the list of retained checkpoints
            (log / f"{batch}").touch()
            told.take()
            driver.take()
            publisher.look(QUERY)
        published = {**told.take(), **driver.take()}
        publisher.look()  # the first one shows how many queries are not guarded
        told.take()
        publisher.look()
        look = {**told.take(), **driver.take()}
        stores.files.close()
    return published, look


class _ZooKeeper:
    """An operator's: it is connected, and every node is there."""

    def __init__(self, told: Requests) -> None:
        self._told = told

    def start(self) -> None:
        """It has started."""

    def wait(self, timeout: float) -> Connection:
        del timeout
        return Connection.CONNECTED

    def call(self, operation: Operation[Any], timeout: float) -> object:
        del timeout
        self._told.operation(operation)
        return (b"", Stat(0, 1, 0, 0, 0)) if isinstance(operation, Get) else None


def request_and_wait() -> tuple[Count, Count]:
    """Return the requests of the operator and of the leader that answers, and those of one look for the answer."""
    with TemporaryDirectory() as made:
        root, told, wire = Path(made), Told(), Requests(World(0))
        leader = led(root)
        files = told.files(root)
        admin = JobAdmin(files, cast("Any", _ZooKeeper(wire)), 10.0)
        answering, asking = (NamedRequests(admin.directory(JOB, leader)) for _ in range(2))
        for _ in range(KEPT + WARM):  # the first ones make folders, and none is forgotten yet
            told.take()
            sent(wire)
            asked = ask(admin, JOB, "restart", None, "me")
            for each in answering.accept():
                answering.answer(each, State.DONE, "It is restarted.")
        request = {**told.take(), **sent(wire)}
        assert (found := asking.load(asked.id)) is not None
        assert found.state is State.DONE
        wait = told.take()
        files.close()
    return request, wait


def mark(files: Namespace, job: str) -> None:
    """Mark a lease as an operator does who wants the leader to look; see :meth:`leader.job.admin.JobAdmin._mark`."""
    directory = newest(files.list(job))
    assert directory is not None
    record = f"{job}/{directory.name}/{RECORD}"
    (lease,) = [found for name in files.list(record) if (found := Lease.parse(name)) is not None]
    files.rename(f"{record}/{lease.name}", f"{record}/{lease.asked_to_look().name}", "operator")


class _Bulk:
    def __init__(self, told: Told) -> None:
        self._told, self._files = told, LocalFileSystem()

    def open_output_stream(self, path: str) -> Any:
        self._told("write", BULK["create"])
        return self._files.open_output_stream(path)


def rounds(partitions: int) -> tuple[tuple[Count, Count], tuple[Count, Count]]:
    """Return the requests of a round without news, and of one with a batch: each at the source and at the replica.

    Args:
        partitions: of a query with one operator, which has two state stores in each.
    """
    with TemporaryDirectory() as made, mock.patch.object(simulated_spark, "PARTITIONS", partitions):
        roots = Path(made, "source"), Path(made, "replica")
        for root in roots:
            root.mkdir()
        tolds = Told(), Told()
        here, there = (told.files(root) for told, root in zip(tolds, roots, strict=True))
        leader, other = led(roots[0]), led(roots[1], f"{JOB}.replica")
        spark = SimulatedSpark(HDFS, Random(0), compaction=10, deltas=10)  # noqa: S311  # to be drawn again
        run, home = spark.run(), roots[0] / JOB / leader.name / SPARK / QUERY
        bulk = {root.as_uri(): _Bulk(told) for root, told in zip(roots, tolds, strict=True)}

        def opened(uri: str) -> object:
            return next(each for root, each in bulk.items() if uri.startswith(root))

        def read(tree: Tree, path: str) -> object:
            told = next(told for root, told in zip(roots, tolds, strict=True) if tree.uri.startswith(root.as_uri()))
            told("read", BULK["open"])
            return really(tree, path)

        really = Tree._opened
        with mock.patch("ha.checkpoints.trees.bulk_files", opened), mock.patch.object(Tree, "_opened", read):
            replicator = Replicator(
                ReplicaSource(JobAdmin(here, None, 10.0), here, JOB, Budget()),
                there,
                cast("Leadership", SimpleNamespace(is_leader=lambda: True)),
                JobAdmin(there, None, 10.0).directory(f"{JOB}.replica", other),
                retained=10,
            )
            found: list[list[Count]] = [[], [], [], []]
            for number in range(WARM + CYCLE):
                _do_batch(spark, run, home)
                for at, news in ((2, True), (0, False)):
                    (done,) = replicator.round()
                    assert (done.problem, done.files > 0) == ("", news)
                    for store, told in enumerate(tolds):
                        if number >= WARM:
                            found[at + store].append(told.take())
                        told.take()
        here.close()
        there.close()
    idle_here, idle_there, here_, there_ = (mean(each) for each in found)
    return (idle_here, idle_there), (here_, there_)


def _do_batch(spark: SimulatedSpark, run: Any, home: Path) -> None:
    """Do a batch, with the maintenance that follows it, and bring a directory up to date."""
    before, seen = spark.newest(), dict(spark.files)
    while spark.newest() == before:
        next(run)
    for path in seen.keys() - spark.files.keys():
        (home / path).unlink()
    for path, data in spark.files.items():
        if seen.get(path) is not data:  # Spark does not write a file again
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_bytes(data)


def replication() -> tuple[Rounds, Rounds]:
    idle, few = rounds(2)
    _, many = rounds(6)
    made = []
    for store in range(2):
        batch, directory = between(few[store], many[store], steps=8)  # four more partitions with two stores each
        of_none = {kind: round(value - 3 * directory.get(kind, 0.0), 2) for kind, value in batch.items()}
        made.append(Rounds(idle=idle[store], batch=of_none, directory=directory))
    return made[0], made[1]


def output(partitions: int, *, sealed: bool) -> Count:
    """Return the requests of a batch of an output with partitions; ``sealed`` as those of the format ``ha``."""
    with TemporaryDirectory() as made:
        root, told = Path(made), Told()
        leader = led(root / "jobs")
        directory = f"{(root / 'jobs').as_uri()}/{JOB}/{leader.name}"
        opened: list[BoundedFiles] = []

        def open_files(uri: str) -> BoundedFiles:
            opened.append(told.files(Path(uri.removeprefix("file://"))))
            return opened[-1]

        home = LeaderFiles(JOB, leader.epoch, leader.session_id, directory, open_files)
        journal = Journal(home, f"{root.as_uri()}/out", "output", alone=not sealed)
        for batch in range(WARM):
            attempt = uuid.uuid4().hex
            rows = Path(journal.staged.removeprefix("file://"), attempt, layout.ROWS)
            if not batch:
                journal.settle()
            for number in range(partitions):
                folder = rows / f"day={number}"
                folder.mkdir(parents=True)
                (folder / "part-0").write_text("rows")
            record = Record({f"day={number}": {"part-0": 4} for number in range(partitions)})
            told.take()
            assert journal.publish(attempt, Batch(batch), record)
        found = told.take()
        journal.close()
        for each in opened:
            each.close()
    return found


def count(told_to_look: Callable[[], Mapping[str, Count]]) -> WorkCosts:
    """Count everything; ``told_to_look`` counts what an election and its readers do when a lease is marked."""
    batch, look = batch_and_look()
    request, wait = request_and_wait()
    source, replica = replication()
    told = told_to_look()
    contenders = {
        kind: round(sum(each.get(kind, 0.0) for each in (request, told["leader"], told["standby"])), 2)
        for kind in sorted({*request, *told["leader"], *told["standby"]})
    }
    return WorkCosts(
        batch=batch,
        look=look,
        request=contenders,
        heard=told["agent"],
        wait=wait,
        source=source,
        replica=replica,
        output=between(output(1, sealed=False), output(2, sealed=False)),
        sink=between(output(1, sealed=True), output(2, sealed=True)),
    )
