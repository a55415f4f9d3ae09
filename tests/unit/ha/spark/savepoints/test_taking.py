"""Savepoints of a job whose queries go on: complete, consistent, shown at once or not at all, and started from."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import pytest

from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.spark.savepoints import taking
from ha.spark.savepoints.places import Manifest, opened, own
from ha.spark.savepoints.restoring import complete, decide, restored, stage
from ha.spark.savepoints.taking import WantedSavepoint, take
from ha.spark.supervision.states import Graph, GraphQuery
from leader.errors import Fenced, InvalidName
from leader.job.cleanup import Cleanup
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status
from leader.layout.names import SAVEPOINTS, SPARK
from store.errors import AlreadyExists, Conflict, Invalid
from tests.unit.ha.checkpoints.simulated_spark import HDFS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_inputs import OLD, on_hdfs
from tests.unit.ha.spark.checkpoint_tools.place import Place, checkpoint
from tests.unit.ha.spark.checkpoint_tools.test_exporting import after

GRAPH = Graph([GraphQuery("clean", [], ["rows"], 0), GraphQuery("sums", ["rows"], [], 0)])


class Died(BaseException):
    """The process dies here."""


@dataclass
class Job:
    """A job with two queries, of which one reads what the other writes, and its leader's end of savepoints."""

    place: Place
    leadership: Leadership
    stores: Stores
    said: list[str] = field(default_factory=list)

    def write(self, query: str, files: dict[str, bytes]) -> None:
        self.place.write(self.place.below(self.leadership.path(f"{SPARK}/{query}")), files)

    def read(self, query: str) -> dict[str, bytes]:
        return self.place.read(self.place.below(self.leadership.path(f"{SPARK}/{query}")))

    def take(
        self, where: str, go_on: Callable[[], object] = bool, *, stopped: bool = False, partial: bool = False
    ) -> Manifest:
        wanted = WantedSavepoint("7", where, "me", stopped, partial)
        return take(self.stores, self.leadership.own, wanted, go_on, self.said.append)

    def stage(self, where: str, *, discard_newer: bool = False) -> Manifest:
        return stage(self.stores, self.leadership.own, where, bool, discard_newer=discard_newer)

    def put_back(self, where: str) -> Manifest | None:
        decide(self.leadership.own, where)
        return self.complete()

    def complete(self) -> Manifest | None:
        return complete(self.leadership.own, lambda query: self.leadership.path(f"{SPARK}/{query}"))

    def outside(self, name: str) -> str:
        return f"{self.place.files.uri}/outside/{name}"

    def names(self, folder: str) -> set[str]:
        return set(self.leadership.names(folder))


def led(place: Place, name: str = "orders") -> Iterator[Job]:
    stores = Stores(load({"files": place.jobs, "zookeeper": ""}))
    with place.leading(name) as leadership:
        yield Job(place, leadership, stores)
    stores.close()


@pytest.fixture
def job(near: Place) -> Iterator[Job]:
    """A job whose reader has committed batch 1, and whose writer has committed batch 3 and begun batch 4."""
    for made in led(near):
        yield with_queries(made)


@pytest.fixture
def quick(local: Place) -> Iterator[Job]:
    for made in led(local):
        yield with_queries(made)


@pytest.fixture
def other(quick: Job) -> Iterator[Job]:
    yield from led(quick.place, "returns")


def with_queries(job: Job) -> Job:
    job.write("clean", checkpoint(3))
    job.write("sums", {path: data for path, data in checkpoint(1).items() if path in after(1)})
    return job


def commits(job: Job, query: str, batch: int) -> None:
    before, home = job.read(query), job.place.below(job.leadership.path(f"{SPARK}/{query}"))
    files = {path: data for path, data in checkpoint(batch).items() if before.get(path) != data}
    for path in files.keys() & before.keys():
        job.place.direct.delete(f"{home}/{path}")
    job.write(query, files)


@pytest.mark.slow
def test_a_savepoint_is_complete_and_says_what_it_is(job: Job) -> None:
    manifest = job.take(job.outside("a"))
    saved = job.place.read("outside/a")
    assert msgspec.json.decode(saved.pop("savepoint.json"), type=Manifest) == manifest
    assert {path.removeprefix("spark/clean/"): data for path, data in saved.items() if "clean" in path} == after(3)
    assert {query.name: query.batch for query in manifest.queries} == {"clean": 3, "sums": 1}
    assert (manifest.job, manifest.epoch, manifest.id, manifest.by) == ("orders", 1, "7", "me")
    assert (manifest.files, manifest.bytes) == (len(saved), sum(map(len, saved.values())))
    assert {query.id for query in manifest.queries} == {"b0-b0-b0-b0-b0"}
    assert job.place.names("outside") == {"a"}, "nothing else is left there"
    assert job.said[-1].startswith(f"It has copied {len(saved)} of {len(saved)} files, ")


@pytest.mark.slow
def test_a_savepoint_says_which_query_reads_another_file_system(quick: Job) -> None:
    quick.write("daily", on_hdfs(until_batch(HDFS, 2)).files)
    manifest = quick.take(quick.outside("a"))
    assert next(each for each in manifest.queries if each.name == "daily").inputs == [f"{OLD}/out/clean"]
    (said,) = manifest.bound(quick.outside("a"))
    assert said.startswith(f"daily has read files of {OLD}/out/clean, ")
    assert manifest.bound(OLD) == []


@pytest.mark.parametrize(
    ("kind", "state"), [(HDFS, "unknown provider, format 1"), (ROCKSDB_IDS, "unknown provider, format 2")]
)
def test_it_says_which_operators_a_query_has_if_metadata_are_there(quick: Job, kind: str, state: str) -> None:
    files = until_batch(kind, 2).files
    quick.write("named", files)
    quick.write("unnamed", {path: data for path, data in files.items() if path != "state/0/_metadata/metadata"})
    found = {query.name: query for query in quick.take("7").queries}
    assert (found["named"].state, found["named"].operators) == (state, {0: "join"})
    assert (found["unnamed"].state, found["unnamed"].operators) == (state, {})
    assert found["clean"].operators == {}


def test_a_savepoint_without_a_place_is_one_of_the_jobs_own(quick: Job) -> None:
    quick.take("7")
    assert quick.names(SAVEPOINTS) == {"7"}
    assert [name for name, _ in own(quick.stores, quick.leadership.own)] == ["7"]


def test_a_writer_is_waited_for_and_its_batch_is_in_the_savepoint(quick: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.leadership.graph.put(msgspec.json.encode(GRAPH))
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            commits(quick, "clean", 4)

    monkeypatch.setattr(taking, "BOOT_CLOCK", SimpleNamespace(sleep=sleep))
    manifest = quick.take(quick.outside("a"))
    assert {query.name: query.batch for query in manifest.queries} == {"clean": 4, "sums": 1}
    assert len(pauses) == 2
    assert "It waits until query clean has completed the batch that it has begun." in quick.said


def test_a_stopped_query_keeps_the_batch_that_it_has_begun(quick: Job) -> None:
    begun = {"offsets/4": after(4)["offsets/4"], "sources/0/4": after(4)["sources/0/4"]}
    quick.place.direct.delete(quick.place.below(quick.leadership.path(f"{SPARK}/clean/offsets/4")))
    quick.write("clean", begun)
    manifest = quick.take(quick.outside("a"), stopped=True)
    assert [(query.name, query.batch, query.begun) for query in manifest.queries] == [
        ("clean", 3, True),
        ("sums", 1, False),
    ]
    saved = quick.place.read("outside/a/spark/clean")
    assert saved == {**after(3), **begun}
    assert manifest.stopped


def test_a_savepoint_that_fails_or_is_given_up_leaves_nothing_and_harms_nothing(quick: Job) -> None:
    before = {query: quick.read(query) for query in ("clean", "sums")}
    for error in (RuntimeError("Enough."), Died()):
        calls: list[int] = []

        def stop(error: BaseException = error, calls: list[int] = calls) -> None:
            calls.append(1)
            if len(calls) > 12:
                raise error

        for where in (quick.outside("a"), "own"):
            calls.clear()
            with pytest.raises(type(error)):
                quick.take(where, stop)
            assert len(calls) > 12
    assert quick.place.names("outside") == set()
    assert quick.names(SAVEPOINTS) == set()
    assert {query: quick.read(query) for query in before} == before


@pytest.mark.slow
def test_what_a_dead_sidecar_has_left_among_the_jobs_own_is_deleted_by_the_next_savepoint(quick: Job) -> None:
    quick.place.write(quick.place.below(quick.leadership.path(f"{SAVEPOINTS}/_saving-3/parts")), {"x": b"half"})
    assert own(quick.stores, quick.leadership.own) == []
    quick.take("7")
    assert quick.names(SAVEPOINTS) == {"7"}


def test_a_place_that_is_taken_is_refused(quick: Job) -> None:
    for where in ("7", quick.outside("a")):
        quick.take(where)
        with pytest.raises(AlreadyExists, match="choose another place"):
            quick.take(where)


@pytest.mark.slow
def test_a_job_without_a_batch_has_nothing_to_save(other: Job) -> None:
    with pytest.raises(Invalid, match="has completed a batch"):
        other.take("7")
    assert other.names(SAVEPOINTS) == set()


@pytest.mark.slow
def test_a_batch_that_cannot_be_continued_is_not_saved(quick: Job) -> None:
    quick.place.direct.delete(quick.place.below(quick.leadership.path(f"{SPARK}/clean/state/0/0/2.delta")))
    with pytest.raises(Invalid, match=r"Batch 3 of query clean cannot be continued.*state/0/0/2.delta"):
        quick.take("7")


@pytest.mark.slow
def test_a_fenced_leader_shows_no_savepoint(quick: Job) -> None:
    home = quick.place.below(quick.leadership.directory)

    def fence() -> None:
        if quick.place.direct.list(f"{home}/{SAVEPOINTS}/_saving-7"):
            quick.place.direct.rename(home, home.replace("0000000001", "0000000002"))
            raise Conflict("It goes on until it is fenced.")

    with pytest.raises((Fenced, Conflict)):
        quick.take("7", lambda: None if not _exists(quick, home) else fence())


def _exists(job: Job, home: str) -> bool:
    names = (
        {entry.name for entry in job.place.direct.list(f"{home}/{SAVEPOINTS}")}
        if SAVEPOINTS in {entry.name for entry in job.place.direct.list(home)}
        else set()
    )
    return "_saving-7" in names


@pytest.mark.slow
def test_neither_a_cleanup_nor_an_emptied_trash_touches_a_savepoint(quick: Job) -> None:
    quick.take("7")
    for status in (Status.RUNNING, Status.FINISHED):
        quick.leadership.status.change(quick.leadership.status.read(), status)
    cleanup = Cleanup(quick.leadership.own)
    cleanup.clean()
    cleanup.empty()
    assert quick.names(SPARK) == set()
    ((_, manifest),) = own(quick.stores, quick.leadership.own)
    assert quick.stage("7") == manifest


def test_a_savepoint_is_disposed_of_and_nothing_else_is(quick: Job) -> None:
    quick.take("7")
    quick.take(quick.outside("a"))
    for where in ("7", quick.outside("a")):
        with opened(quick.stores, quick.leadership.own, where) as place:
            assert place.dispose("orders").id == "7"
            with pytest.raises(Invalid, match="There is no savepoint"):
                place.dispose("orders")
    assert (quick.names(SAVEPOINTS), quick.place.names("outside")) == (set(), set())
    quick.place.write("outside/b", {"precious": b"data"})
    with opened(quick.stores, None, quick.outside("b")) as place, pytest.raises(Invalid, match="no savepoint"):
        place.dispose("orders")
    assert quick.place.names("outside") == {"b"}


@pytest.mark.slow
def test_a_name_is_no_place_without_a_job_and_none_begins_with_an_underscore(quick: Job) -> None:
    for where, kind in (("7", Invalid), (quick.outside("_a"), Invalid), ("../7", InvalidName), ("s3://a/b", Invalid)):
        with pytest.raises(kind), opened(quick.stores, None, where):
            pass


def test_another_job_starts_from_it(quick: Job, other: Job) -> None:
    quick.take(quick.outside("a"))
    manifest = other.stage(quick.outside("a"))
    assert other.names(SPARK) == set(), "not before it is decided"
    assert not restored(other.leadership.own, quick.outside("a"))
    assert other.put_back(quick.outside("a")) == manifest
    assert (other.read("clean"), set(other.names(SPARK))) == (after(3), {"clean", "sums"})
    assert restored(other.leadership.own, quick.outside("a"))
    assert not restored(other.leadership.own, quick.outside("b"))
    assert other.complete() is None


def test_a_job_with_nothing_newer_is_put_back_and_its_outputs_stay(quick: Job) -> None:
    quick.place.write(quick.place.below(quick.leadership.path("out/rows-1/ready/3")), {"x": b"1"})
    quick.take("7")
    quick.stage("7")
    quick.put_back("7")
    assert quick.read("clean") == after(3)
    assert quick.names("out") == {"rows-1"}


@pytest.mark.parametrize("newer", ["batch", "query", "id", "odd name"])
def test_a_job_that_has_done_more_is_put_back_only_on_demand_and_that_can_be_undone(quick: Job, newer: str) -> None:
    quick.place.write(quick.place.below(quick.leadership.path("out/rows-1/ready/4")), {"x": b"1"})
    quick.take("7")
    if newer == "batch":
        commits(quick, "clean", 4)
    elif newer == "query":
        quick.write("extra", checkpoint(0))
    elif newer == "odd name":
        quick.write("orders v2", checkpoint(0))
    else:
        quick.write("clean", {"metadata": b'{"id":"a1-a1-a1-a1-a1"}'})
    before = {query: quick.read(query) for query in quick.names(SPARK)}
    with pytest.raises(Conflict, match="--discard-newer"):
        quick.stage("7")
    quick.stage("7", discard_newer=True)
    assert {query: quick.read(query) for query in quick.names(SPARK)} == before
    quick.put_back("7")
    assert (quick.read("clean"), quick.names(SPARK)) == (after(3), {"clean", "sums"})
    assert quick.names("out") == set(), "what is done once more is published once more"
    trash = Cleanup(quick.leadership.own).trash()
    assert {folder for each in trash for folder in each.folders} == {"out", *(f"spark/{query}" for query in before)}
    for query in before:
        quick.leadership.queries.restore(query)
    assert {query: quick.read(query) for query in quick.names(SPARK)} == before


@pytest.mark.slow
def test_a_leader_that_dies_halfway_leaves_it_to_the_next_one(quick: Job) -> None:
    quick.take("7")
    survived = 0
    while True:
        commits(quick, "clean", 4)
        quick.stage("7", discard_newer=True)
        decide(quick.leadership.own, "7")
        try:
            with pytest.MonkeyPatch.context() as patch:
                _let_die(patch, quick.leadership.own, after=survived)
                quick.complete()
        except Died:
            survived += 1
        else:
            break
        quick.complete()
        assert (quick.read("clean"), quick.names(SPARK)) == (after(3), {"clean", "sums"}), f"after {survived} changes"
    assert survived > 9, "it dies before each change"


def _let_die(patch: pytest.MonkeyPatch, directory: FencedDirectory, after: int) -> None:
    done: list[str] = []

    def dying(name: str) -> Callable[..., object]:
        change = getattr(directory, name)

        def step(*arguments: object) -> object:
            if len(done) == after:
                raise Died
            done.append(name)
            return change(*arguments)

        return step

    for name in ("rename", "commit", "delete", "make_folder"):
        patch.setattr(directory, name, dying(name))


def test_what_is_no_savepoint_or_not_whole_is_not_started_from(quick: Job, other: Job) -> None:
    with pytest.raises(Invalid, match="There is no savepoint"):
        other.stage(quick.outside("nothing"))
    quick.take(quick.outside("a"))
    quick.place.direct.delete("outside/a/spark/sums/commits/1")
    with pytest.raises(Invalid, match="is damaged: query sums has 7 files, and had 8"):
        other.stage(quick.outside("a"))
    quick.place.direct.delete("outside/a/savepoint.json")
    quick.place.direct.write("outside/a/savepoint.json", json.dumps({"format": 2}).encode())
    with pytest.raises(Invalid, match="no savepoint"):
        other.stage(quick.outside("a"))
    assert other.names(SPARK) == set()


def test_a_query_without_a_batch_is_waited_for(quick: Job) -> None:
    first = {path: data for path, data in after(0).items() if path != "commits/0"}
    quick.write("late", first)

    def go_on() -> None:
        if any("first batch of late" in each for each in quick.said):
            quick.write("late", {"commits/0": after(0)["commits/0"]})

    manifest = quick.take(quick.outside("a"), go_on)
    assert "late" in {each.name for each in manifest.queries}
    assert manifest.left_out == []


def test_a_query_without_a_batch_is_left_out_on_demand_and_named(quick: Job) -> None:
    quick.write("late", {"metadata": after(0)["metadata"]})
    manifest = quick.take(quick.outside("a"), partial=True)
    assert manifest.left_out == ["late"]
    assert manifest.said.endswith("; without late: no batch was complete, or no tool knows the name")
    assert quick.take(quick.outside("b"), stopped=True).left_out == ["late"], "nobody can wait for it"


@pytest.mark.slow
def test_a_checkpoint_whose_name_no_tool_knows_is_not_left_out_in_silence(quick: Job) -> None:
    quick.write("orders v2", checkpoint(0))
    with pytest.raises(Invalid, match=r"'orders v2' cannot be the name of a query .* --partial leaves it out"):
        quick.take(quick.outside("a"))
    assert quick.take(quick.outside("a"), partial=True).left_out == ["orders v2"]
    assert quick.take(quick.outside("b"), stopped=True).left_out == ["orders v2"], "the job has ended for this"


def test_a_damaged_savepoint_is_not_started_from(quick: Job, other: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.checkpoints.verify.AGAIN_S", 0.0)
    quick.take(quick.outside("a"))
    quick.place.write(f"outside/a/{SPARK}/clean", {"metadata": b""})
    with pytest.raises(Invalid, match=r"is damaged: query clean, metadata: It is damaged. It is empty."):
        other.stage(quick.outside("a"))
