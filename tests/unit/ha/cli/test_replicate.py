"""``ha replica run``: a copy of a job's checkpoints elsewhere, round by round, and what it says of itself."""

from pathlib import Path
from typing import Any

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.spark.replication.replication import ReplicaRounds
from ha.spark.tools import import_checkpoint
from store.errors import Unknown
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import closed, until_batch
from tests.unit.ha.command_line import CommandLine, Said

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


class Sides:
    def __init__(self, folder: Path, cli: CommandLine) -> None:
        self.folder, self.cli = folder, cli
        self.here, self.there = (folder / "here").as_uri(), (folder / "there").as_uri()

    def commit(self, batch: int, query: str = "daily") -> None:
        place = self.folder / f"{query}-{batch}"
        until_batch(ROCKSDB_IDS, batch).write_to(place)
        with self.leading(self.here) as leadership:
            import_checkpoint(leadership, query, place.as_uri(), replace=True)

    @staticmethod
    def leading(root: str, job: str = "orders") -> "ha.lead":
        return ha.lead(job, timeout=PATIENCE_S, files=root, zookeeper="")

    def replicate(self, *more: str, code: int = 0) -> Said:
        return self.ha("run", *more, code=code)

    def ha(self, verb: str, *more: str, code: int = 0) -> Said:
        return self.cli(f"replica {verb} orders --to {self.there} --files {self.here}", *more, code=code)

    def replica(self, query: str = "daily") -> dict[str, bytes]:
        (home,) = (self.folder / "there/orders.replica").glob(f"0*/spark/{query}")
        return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def sides(tmp_path: Path, cli: CommandLine) -> Sides:
    found = Sides(tmp_path, cli)
    found.commit(3)
    return found


def closure_of(batch: int) -> dict[str, bytes]:
    files = until_batch(ROCKSDB_IDS, batch).files
    return {path: files[path] for path in closed(files, batch).files}


def test_a_round_moves_the_closure_and_the_next_one_what_it_adds(sides: Sides) -> None:
    first = sides.replicate("--once", "--json").json
    assert sides.replica() == closure_of(3)
    assert (first["query"], first["batch"], first["newest"], first["anew"]) == ("daily", 3, 3, False)
    assert (first["files"], first["bytes"]) == (len(closure_of(3)), sum(map(len, closure_of(3).values())))
    sides.commit(4)
    then = sides.replicate("--once", "--json").json
    assert then["files"] == len(closure_of(4).keys() - closure_of(3).keys())
    assert sides.replica() == closure_of(3) | closure_of(4)
    assert "daily is at batch 4: nothing to move" in sides.replicate("--once").out


def test_what_older_batches_need_goes(sides: Sides) -> None:
    for batch in range(3, 8):
        sides.commit(batch)
        sides.replicate("--once", "--retain", "2")
    assert sides.replica() == closure_of(6) | closure_of(7)


def test_only_some_queries(sides: Sides) -> None:
    sides.commit(2, "weekly")
    sides.replicate("--once", "--query", "weekly")
    assert sides.replica("weekly") == closure_of(2)
    assert not list((sides.folder / "there").rglob("spark/daily"))


def test_it_says_how_far_it_is(sides: Sides) -> None:
    assert "There is no replica of job 'orders'" in sides.ha("status", code=1).err
    sides.replicate("--once")
    shown = sides.ha("status").out
    assert "daily  batch 3, 0 behind then, had all " in shown
    assert "; no process replicates it since " in shown
    said = sides.ha("status", "--json").json
    assert (said["source"], said["promoted"], said["replicated"]) == (f"{sides.here}/orders", False, False)
    assert (said["queries"][0]["batch"], said["queries"][0]["behind"]) == (3, 0)


def test_metrics_are_written_into_a_file(sides: Sides) -> None:
    path = sides.folder / "replica.prom"
    sides.replicate("--once", "--metrics-file", str(path))
    shown = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
    labels = '{job_name="orders",query="daily"}'
    assert shown[f"ha_replica_behind_batches{labels}"] == "0.0"
    assert float(shown[f"ha_replica_level_timestamp_seconds{labels}"]) > 1e9
    said = sides.replicate("--once", "--metrics-file", str(sides.folder / "nowhere/replica.prom"), code=1)
    assert "cannot be written" in said.err


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("nowhere", "has no known scheme"),
        ("swebhdfs://127.0.0.1:1/jobs", "which a bulk copy cannot use"),
        ("HERE", "is the root of job 'orders' itself"),
    ],
)
def test_a_wrong_place_is_refused(sides: Sides, to: str, said: str, cli: CommandLine) -> None:
    to = sides.here if to == "HERE" else to
    assert said in cli("replica run orders --to", to, "--files", sides.here, "--once", code=1).err


def test_of_two_one_replicates(sides: Sides) -> None:
    leadership: Leadership
    with sides.leading(sides.there, "orders.replica") as leadership:
        assert leadership.is_leader()
        assert "Job 'orders.replica' is led by" in sides.replicate("--once", code=1).err


class Gone:
    def round(self) -> list[Any]:
        raise Unknown("Connection refused.")


def test_a_source_that_does_not_answer_costs_no_leadership(sides: Sides) -> None:
    nothing: Any = None
    complaints: list[str] = []
    replication = ReplicaRounds(
        nothing, "orders", sides.there, (), 1, nothing, done=nothing, complain=complaints.append
    )
    gone: Any = Gone()
    with sides.leading(sides.there, "orders.replica") as leadership:
        for _ in range(2):
            replication._round_or_complaint(gone, leadership)
    assert complaints == ["it tries again. Connection refused."] * 2
    with pytest.raises(Unknown):
        replication._round_or_complaint(gone, leadership)


def test_a_checkpoint_that_no_query_can_have_is_left_out_aloud(sides: Sides) -> None:
    (here,) = (sides.folder / "here/orders").glob("0*/spark")
    (here / "6f1d6f0b-8c0c-4bd1-9d0c-1c38a8a07a11").mkdir()
    sides.replicate("--once")  # a query without a name begins anew at each start, so this is of none
    (here / "orders v2").mkdir()
    told = sides.replicate("--once", code=1)
    assert "daily is at batch 3" in told.out, "the others are copied"
    assert "ha: left out, because no query can have such a name: 'orders v2'" in told.err
    sides.replicate("--once", "--query", "daily")
