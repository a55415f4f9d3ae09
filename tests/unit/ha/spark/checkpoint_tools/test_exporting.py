"""Exporting: a job's checkpoint as it was right after one batch, whatever the job does meanwhile."""

import json
import threading

import pytest

from ha.cli.commands import exit_code
from ha.spark import checkpoint_location
from ha.spark.checkpoint_tools.copying import CopyProgress
from ha.spark.tools import export_checkpoint, import_checkpoint
from leader.errors import NoLeader
from store.errors import AlreadyExists, Conflict, Invalid
from tests.unit.ha.checkpoints.simulated_spark import HDFS, lz4
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.checkpoints.test_inputs import OLD, on_hdfs
from tests.unit.ha.spark.checkpoint_tools.place import JOB, QUERY, Place, checkpoint
from tests.unit.ha.spark.checkpoint_tools.test_importing import Died, dies_after


def after(newest: int) -> dict[str, bytes]:
    logs = [f"{log}/{batch}" for log in ("offsets", "commits") for batch in range(newest + 2)]
    needed = {"metadata", f"offsets/{newest - 1}", f"offsets/{newest}", f"commits/{newest}"}
    later = {f"state/0/0/{newest + 2}.delta", f"sources/0/{newest + 1}"}
    return {path: data for path, data in checkpoint(newest).items() if path in needed or path not in {*logs, *later}}


@pytest.fixture
def job(place: Place) -> Place:
    """A job with a query, of which batch 3 is committed and batch 4 under way."""
    return with_query(place)


@pytest.fixture
def close(near: Place) -> Place:
    return with_query(near)


@pytest.fixture
def quick(local: Place) -> Place:
    return with_query(local)


def with_query(place: Place) -> Place:
    place.write("elsewhere", checkpoint(3))
    with place.leading() as leadership:
        import_checkpoint(leadership, QUERY, place.source)
    return place


def test_a_checkpoint_is_exported_as_it_was_after_its_newest_batch(job: Place) -> None:
    copied = export_checkpoint(JOB, QUERY, f"{job.files.uri}/new/out", files=job.jobs, zookeeper="")
    assert job.read("new/out") == after(3)
    assert (copied.files, copied.batch, copied.kept) == (len(after(3)), 3, 0)
    assert job.names("new") == {"out"}


def test_an_interrupted_export_shows_nothing_and_goes_on(close: Place) -> None:
    with pytest.raises(Died):
        export_checkpoint(JOB, QUERY, f"{close.files.uri}/new/out", told=dies_after(3), files=close.jobs, zookeeper="")
    assert "out" not in close.names("new")
    assert export_checkpoint(JOB, QUERY, f"{close.files.uri}/new/out", files=close.jobs, zookeeper="").kept >= 3
    assert close.read("new/out") == after(3)


def test_an_existing_target_is_kept(quick: Place) -> None:
    quick.write("new/out", {"mine": b"1"})
    with pytest.raises(AlreadyExists, match="choose another directory"):
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", files=quick.jobs, zookeeper="")
    assert quick.read("new/out") == {"mine": b"1"}


def test_an_export_needs_a_job_and_a_batch(quick: Place) -> None:
    target = f"{quick.files.uri}/new/out"
    with pytest.raises(NoLeader, match="There is no job 'payments'"):
        export_checkpoint("payments", QUERY, target, files=quick.jobs, zookeeper="")
    with pytest.raises(Invalid, match="has no checkpoint of a query 'weekly': it has daily"):
        export_checkpoint(JOB, "weekly", target, files=quick.jobs, zookeeper="")
    with pytest.raises(Invalid, match="has no known scheme"):
        export_checkpoint(JOB, QUERY, "s3a://bucket/out", files=quick.jobs, zookeeper="")
    with pytest.raises(Invalid, match="is encrypted WebHDFS, which a bulk copy cannot use"):
        export_checkpoint(JOB, QUERY, "swebhdfs://127.0.0.1:1/new/out", files=quick.jobs, zookeeper="")
    assert "new" not in quick.names(""), "what is refused makes nothing"


def test_an_export_says_where_its_sources_have_read(local: Place, capsys: pytest.CaptureFixture[str]) -> None:
    simulated = on_hdfs(until_batch(HDFS, 4))
    local.write("elsewhere", simulated.files)
    with local.leading() as leadership:
        import_checkpoint(leadership, QUERY, local.source)
    copied = export_checkpoint(JOB, QUERY, f"{local.files.uri}/new/before", batch=3, files=local.jobs, zookeeper="")
    assert copied.inputs == (f"{OLD}/out/clean",)
    out = f"{local.files.uri}/new/out"
    assert exit_code(["checkpoint", "export", JOB, QUERY, out, "--files", local.jobs, "--zookeeper", ""]) == 0
    assert (
        f"{JOB}: {QUERY} has read files of {OLD}/out/clean, which is on another file system" in capsys.readouterr().err
    )


def test_an_earlier_batch_is_exported(quick: Place) -> None:
    copied = export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", batch=2, files=quick.jobs, zookeeper="")
    assert copied.batch == 2
    assert quick.read("new/out") == after(2)
    with pytest.raises(Invalid, match="Batch 4 of query 'daily' is not retained: take one from 0 to 3"):
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/late", batch=4, files=quick.jobs, zookeeper="")


def test_a_batch_whose_files_are_not_all_there_is_not_exported(quick: Place) -> None:
    with quick.leading() as leadership:
        quick.direct.delete(f"{quick.below(leadership.path(f'spark/{QUERY}'))}/state/0/0/2.delta")
    with pytest.raises(Invalid, match=r"Batch 3 cannot be continued. state/0/0/2.delta: It is missing"):
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", files=quick.jobs, zookeeper="")
    assert (
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", batch=0, files=quick.jobs, zookeeper="").batch == 0
    )


def test_a_file_whose_contents_are_damaged_is_not_copied(quick: Place) -> None:
    with quick.leading() as leadership:
        path = f"{quick.below(leadership.path(f'spark/{QUERY}'))}/state/0/0/2.delta"
        data = quick.direct.read(path, 1000)
        quick.direct.write(path, data[:25] + bytes([data[25] ^ 1]) + data[26:])
    with pytest.raises(Invalid, match=r"state/0/0/2.delta is damaged, and is not copied"):
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", files=quick.jobs, zookeeper="")
    assert export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", batch=0, files=quick.jobs, zookeeper="").files


def test_what_spark_has_compacted_away_is_rebuilt(quick: Place) -> None:
    log = [f'{{"path":"{each}","timestamp":0,"batchId":{each}}}' for each in range(4)]
    with quick.leading() as leadership:
        home = quick.below(leadership.path(f"spark/{QUERY}"))
        for path in ("offsets/1", "sources/0/1", "sources/0/2"):
            quick.direct.delete(f"{home}/{path}")
        quick.write(home, {"sources/0/3.compact": "\n".join(["v1", *log]).encode()})
    export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", batch=2, files=quick.jobs, zookeeper="")
    exported = quick.read("new/out")
    assert exported["offsets/1"] == checkpoint(3)["offsets/2"]
    assert exported["sources/0/2.compact"] == "\n".join(["v1", *log[:3]]).encode()
    assert not {"sources/0/0", "sources/0/1", "sources/0/3.compact"} & exported.keys()


def test_the_query_goes_on_meanwhile_and_the_leader_changes(quick: Place) -> None:
    """The files of batch 4 come, those of batch 0 go, and the directory has another name."""
    happened: list[str] = []
    once = threading.Lock()  # the threads that copy tell side by side

    def told(now: CopyProgress) -> None:
        if now.files_done < 3 or not once.acquire(blocking=False):
            return
        with quick.leading() as leadership:
            home = quick.below(leadership.path(f"spark/{QUERY}"))
            before = checkpoint(3)  # its newest file of state is half written
            new = {path: data for path, data in checkpoint(4).items() if before.get(path) != data}
            committed = {path: new.pop(path) for path in list(new) if path.startswith("commits/")}
            quick.write(home, {**new, "state/0/0/2.snapshot": checkpoint(3)["state/0/0/2.delta"]})
            quick.write(home, committed)  # as Spark does it: commits last
            for path in ("offsets/0", "commits/0", "state/0/0/1.delta"):
                quick.direct.delete(f"{home}/{path}")
            happened.append(home)

    copied = export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", told=told, files=quick.jobs, zookeeper="")
    assert happened
    exported = quick.read("new/out")
    assert copied.batch in (3, 4)
    assert exported.keys() <= checkpoint(4).keys() | {"state/0/0/2.snapshot"}
    needed = {f"commits/{copied.batch}", f"offsets/{copied.batch}", f"state/0/0/{copied.batch + 1}.delta", "metadata"}
    assert needed <= exported.keys()
    assert not any(path.endswith(f"/{copied.batch + 1}") for path in exported)


def test_a_checkpoint_that_changes_all_the_time_is_given_up(quick: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.spark.checkpoint_tools.exporting.ROUNDS", 2)
    rounds: list[int] = []
    home = f"jobs/{JOB}/{next(iter(quick.names(f'jobs/{JOB}')))}/spark/{QUERY}"

    def told(now: CopyProgress) -> None:
        if now.files_done == now.kept:  # the files are listed, and not copied yet
            rounds.append(now.files)
            quick.write(home, {"commits/3": b"v1\n{}" + b" " * len(rounds)})

    with pytest.raises(Conflict, match="could not be copied in 2 rounds"):
        export_checkpoint(JOB, QUERY, f"{quick.files.uri}/new/out", told=told, files=quick.jobs, zookeeper="")
    assert "out" not in quick.names("new")


def test_paths_in_the_checkpoint_follow(quick: Place) -> None:
    name, schema = "state/1/_metadata/v2/0", "state/1/_stateSchema/default/0_a1"

    def noted(uri: str) -> bytes:
        store = {"storeName": "default", "numPartitions": 1, "stateSchemaFilePaths": [f"{uri}/{schema}"]}
        said = {"operatorInfo": {"operatorName": "sessions"}, "stateStoreInfo": [store]}
        return f"v2\n{json.dumps(said, separators=(',', ':'))}".encode()

    state = {f"state/1/0/{version}.delta": lz4(b"d") for version in (1, 2)}
    quick.write(
        "stateful", {**checkpoint(1), **state, schema: b"\x00\x02v9", name: noted(f"{quick.files.uri}/stateful")}
    )
    with quick.leading() as leadership:
        import_checkpoint(leadership, "sessions", f"{quick.files.uri}/stateful")
        location = leadership.path("spark/sessions")
        assert quick.read(quick.below(location))[name] == noted(location)
    with quick.leading() as leadership:
        location = checkpoint_location(leadership, "sessions")
        assert quick.read(quick.below(location))[name] == noted(location)
    for _ in range(2):
        export_checkpoint(JOB, "sessions", f"{quick.files.uri}/new/out", files=quick.jobs, zookeeper="")
        assert quick.read("new/out")[name] == noted(f"{quick.files.uri}/new/out")
        quick.direct.delete("new/out", recursive=True)
