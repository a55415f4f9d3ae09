"""``ha replicate``: a copy of a job's checkpoints elsewhere, round by round, and what it says of itself."""

import json
from pathlib import Path
from typing import Any

import pytest

import ha
from ha.cli.commands import exit_code
from ha.cli.replicate import _Replication
from ha.leadership.leadership import Leadership
from ha.spark import adopt
from store.errors import Unknown
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import closed, until_batch

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.slow]


class Sides:
    """Two roots, and a job in the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here, self.there = (folder / "here").as_uri(), (folder / "there").as_uri()

    def commit(self, batch: int, query: str = "daily") -> None:
        """Have the query come to that batch."""
        place = self.folder / f"{query}-{batch}"
        for path, data in until_batch(ROCKSDB_IDS, batch).files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
        with self.leading(self.here) as leadership:
            adopt(leadership, query, place.as_uri(), replace=True)

    @staticmethod
    def leading(root: str, job: str = "orders") -> "ha.lead":
        return ha.lead(job, timeout=30.0, files=root, zookeeper="")

    def replicate(self, *more: str) -> int:
        return exit_code(["replicate", "orders", "--to", self.there, "--files", self.here, *more])

    def replica(self, query: str = "daily") -> dict[str, bytes]:
        (home,) = (self.folder / "there/orders.replica").glob(f"0*/spark/{query}")
        return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    found = Sides(tmp_path)
    found.commit(3)
    return found


def closure_of(batch: int) -> dict[str, bytes]:
    files = until_batch(ROCKSDB_IDS, batch).files
    return {path: files[path] for path in closed(files, batch).files}


def test_a_round_moves_the_closure_and_the_next_one_what_it_adds(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sides.replicate("--once", "--json") == 0
    assert sides.replica() == closure_of(3)
    first = json.loads(capsys.readouterr().out)
    assert (first["query"], first["batch"], first["newest"], first["anew"]) == ("daily", 3, 3, False)
    assert (first["files"], first["bytes"]) == (len(closure_of(3)), sum(map(len, closure_of(3).values())))
    sides.commit(4)
    assert sides.replicate("--once", "--json") == 0
    then = json.loads(capsys.readouterr().out)
    assert then["files"] == len(closure_of(4).keys() - closure_of(3).keys())
    assert sides.replica() == closure_of(3) | closure_of(4)
    assert sides.replicate("--once") == 0
    assert "daily is at batch 4: nothing to move" in capsys.readouterr().out


def test_what_older_batches_need_goes(sides: Sides) -> None:
    for batch in range(3, 8):
        sides.commit(batch)
        assert sides.replicate("--once", "--retain", "2") == 0
    assert sides.replica() == closure_of(6) | closure_of(7)


def test_only_some_queries(sides: Sides) -> None:
    sides.commit(2, "weekly")
    assert sides.replicate("--once", "--query", "weekly") == 0
    assert sides.replica("weekly") == closure_of(2)
    assert not list((sides.folder / "there").rglob("spark/daily"))


def test_it_says_how_far_it_is(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert sides.replicate("--status") == 1
    assert "There is no replica of job 'orders'" in capsys.readouterr().err
    assert sides.replicate("--once") == 0
    capsys.readouterr()
    assert sides.replicate("--status") == 0
    assert "daily  batch 3, 0 behind, had all " in capsys.readouterr().out
    assert sides.replicate("--status", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["source"], said["promoted"]) == (f"{sides.here}/orders", False)
    assert (said["queries"][0]["batch"], said["queries"][0]["behind"]) == (3, 0)


def test_metrics_are_written_into_a_file(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    path = sides.folder / "replica.prom"
    assert sides.replicate("--once", "--metrics-file", str(path)) == 0
    shown = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
    labels = '{job_name="orders",query="daily"}'
    assert shown[f"ha_replica_behind_batches{labels}"] == "0.0"
    assert float(shown[f"ha_replica_level_timestamp_seconds{labels}"]) > 1e9
    assert sides.replicate("--once", "--metrics-file", str(sides.folder / "nowhere/replica.prom")) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("nowhere", "has no known scheme"),
        ("swebhdfs://127.0.0.1:1/jobs", "which a bulk copy cannot use"),
        ("HERE", "is the root of job 'orders' itself"),
    ],
)
def test_a_wrong_place_is_refused(sides: Sides, to: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    to = sides.here if to == "HERE" else to
    assert exit_code(["replicate", "orders", "--to", to, "--files", sides.here, "--once"]) == 1
    assert said in capsys.readouterr().err


def test_a_job_that_is_not_there_is_refused(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["replicate", "payments", "--to", sides.there, "--files", sides.here, "--once"]) == 3
    assert "There is no job 'payments'" in capsys.readouterr().err
    assert not (sides.folder / "there").exists()


def test_of_two_one_replicates(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    leadership: Leadership
    with sides.leading(sides.there, "orders.replica") as leadership:
        assert leadership.is_leader()
        assert sides.replicate("--once") == 1
    assert "Job 'orders.replica' is led by" in capsys.readouterr().err


class Gone:
    """A round whose source does not answer."""

    def round(self) -> list[Any]:
        raise Unknown("Connection refused.")


def test_a_source_that_does_not_answer_costs_no_leadership(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    nothing: Any = None
    replication = _Replication(nothing, "orders", sides.there, (), 1, nothing, as_json=False)
    gone: Any = Gone()
    with sides.leading(sides.there, "orders.replica") as leadership:
        for _ in range(2):
            replication._round_or_complaint(gone, leadership)
        assert capsys.readouterr().err == "orders: it tries again. Connection refused.\n"
    with pytest.raises(Unknown):
        replication._round_or_complaint(gone, leadership)
