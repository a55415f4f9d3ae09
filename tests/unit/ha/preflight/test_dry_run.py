"""Dry runs of real programs over copies on ``file://``: what is copied, what the program is told, and its end."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ha.checkpoints.contents import Offsets
from ha.config.sources import load
from ha.config.stores import Stores
from ha.preflight import check
from ha.preflight.check import DryRun, preflight
from ha.preflight.scratch import DIRECTORY, LEFT_OVER_MS, Copy, scratch
from ha.preflight.verdict import DryRunEnd, Told
from leader.errors import InvalidSettings
from leader.layout import tree
from store.errors import Invalid
from store.local import LocalFiles
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS
from tests.unit.ha.checkpoints.test_closure import closed, until_batch
from tests.unit.ha.programs import alive
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

SAY = "import json, os, sys, time\nreport = json.load(open(sys.path[1] + '/plans.json'))['sink_cut']['report']\n"
"""Beginning of a program that tells of itself what the cut would."""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = Stores(load({"files": (tmp_path / "ha").as_uri(), "zookeeper": ""}))
    yield opened
    opened.close()


def place(root: Path, files: Mapping[str, bytes], query: str = "daily") -> Path:
    if not (root / "ha/orders").exists():
        tree.create(LocalFiles(root / "ha", durable=False), "orders")
    (leader,) = (root / "ha/orders").iterdir()
    for path, data in files.items():
        file = leader / "spark" / query / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return leader


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_copy_is_the_closure_of_the_batch_before_with_the_newest_one_begun_and_nothing_described(
    stores: Stores, tmp_path: Path, kind: str
) -> None:
    files = until_batch(kind, 6).files
    leader = place(tmp_path, files)
    before = content(leader)
    with scratch(stores, "orders") as made:
        found = made.copy("daily")
        assert found is not None
        copied = content(tmp_path / "ha" / made.mark / "orders" / leader.name / "spark/daily")
    assert (found.batch, found.replayed) == (6, True)
    expected = closed(files, 5, begun=True)
    assert set(copied) - set(expected.rebuilt) == {each for each in expected.files if "/_metadata/" not in each}
    assert "commits/6" not in copied
    assert "offsets/6" in copied
    assert content(leader) == before
    assert not list((tmp_path / "ha").glob(f"{DIRECTORY}*"))


def test_the_first_batch_is_done_again_from_nothing(stores: Stores, tmp_path: Path) -> None:
    place(tmp_path, until_batch(HDFS, 0).files)
    with scratch(stores, "orders") as made:
        found = made.copy("daily")
        assert found is not None
        copied = content(tmp_path / "ha" / made.mark)
    assert (found.batch, found.replayed) == (0, True)
    names = {path.partition("/spark/daily/")[2] for path in copied}
    assert {"metadata", "offsets/0"} <= names
    assert not [each for each in names if each.startswith(("commits", "state"))]


def test_without_the_batch_before_the_next_one_is_done(stores: Stores, tmp_path: Path) -> None:
    files = until_batch(HDFS, 6).files
    place(
        tmp_path, {path: data for path, data in files.items() if path not in {f"commits/{each}" for each in range(6)}}
    )
    with scratch(stores, "orders") as made:
        found = made.copy("daily")
    assert found is not None
    assert (found.batch, found.replayed) == (7, False)


def test_a_query_without_a_batch_has_no_copy_and_a_stuck_one_is_refused(stores: Stores, tmp_path: Path) -> None:
    place(tmp_path, {"metadata": b'{"id":"a-a-a-a-a"}'})
    place(tmp_path, {"commits/6": b"v1\n{}"}, "damaged")
    with scratch(stores, "orders") as made:
        assert made.copy("daily") is None
        with pytest.raises(Invalid, match=r"Spark would not start from it"):
            made.copy("damaged")
    found = preflight(stores, "orders", ["never-started"], {}, tmp_path, without=["damaged"])
    assert (found.fits, [each.fits for each in found.queries]) == (True, [True])
    found = preflight(stores, "orders", ["never-started"], {}, tmp_path)
    assert not found.fits
    assert [each.problems[0].kind for each in found.queries if not each.fits] == ["checkpoint"]


def test_old_leavings_of_killed_runs_are_deleted_and_young_ones_stay(stores: Stores, tmp_path: Path) -> None:
    for name, age in (("old", LEFT_OVER_MS * 2), ("young", LEFT_OVER_MS / 2)):
        folder = tmp_path / "ha" / f"{DIRECTORY}{name}"
        folder.mkdir(parents=True)
        at = folder.stat().st_mtime - age / 1000
        os.utime(folder, (at, at))
    with scratch(stores, "orders"):
        pass
    assert [each.name for each in (tmp_path / "ha").glob(f"{DIRECTORY}*")] == [f"{DIRECTORY}young"]


def run(
    stores: Stores, folder: Path, program: str, timeout: float = 60.0, *queries: str
) -> tuple[dict[str, Told], DryRunEnd, dict[str, str]]:
    """Run a program that leaves its environment in a file; returns that as well."""
    source = folder / "program.py"
    leave = f"open({str(folder / 'environment')!r}, 'w').write(json.dumps(dict(os.environ)))\n"
    source.write_text(f"{SAY}{leave}{program}")
    copies = [Copy("orders", each, 3, True, {}, Offsets({}, 0, {}), {}) for each in queries or ("daily",)]
    own = folder / "own"
    own.mkdir()
    with scratch(stores, "orders") as made:
        given = {**os.environ, "HA_BELIEF": "a sidecar's", "HA_FILES": stores.files.uri, "HA_PREFLIGHT": "x"}
        said, end = DryRun(made, "orders", copies, own).run([sys.executable, str(source)], given, folder, timeout)
        environment = json.loads((folder / "environment").read_text())
        assert environment["HA_FILES"] == environment["HA_PREFLIGHT"] == made.uri
    return said, end, environment


def test_the_program_gets_a_throw_away_job_and_ends_once_all_queries_are_seen(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user/spark-defaults.conf").write_text("spark.own kept\n")
    program = (
        "conf = os.environ['SPARK_CONF_DIR'] + '/spark-defaults.conf'\n"
        f"open({str(tmp_path / 'conf')!r}, 'w').write(open(conf).read())\n"
        "for said in ({'query': 'daily', 'begun': True}, {'query': 'daily', 'done': True, 'sources': []}):\n"
        "    open(report, 'a').write(json.dumps(said) + '\\n')\n"
        "time.sleep(600)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(tmp_path / "user"))
        said, end, environment = run(stores, tmp_path, program)
    assert said["daily"].done
    assert end.error is None
    assert environment["HA_JOB"] == "orders"
    assert environment["HA_ZOOKEEPER"] == ""
    assert "HA_BELIEF" not in environment
    conf = (tmp_path / "conf").read_text()
    assert "spark.own kept" in conf
    assert "spark.sql.streaming.checkpointFileManagerClass ha.preflight.Cut" in conf
    assert f"spark.sql.streaming.checkpointLocation {environment['HA_LEADER_DIRECTORY']}/spark" in conf


def test_a_program_that_ends_by_itself_is_told_with_its_error(stores: Stores, tmp_path: Path) -> None:
    said, end, _ = run(stores, tmp_path, "import there_is_no_such_thing\n")
    assert said == {}
    assert end.text == "it has ended with code 1."
    assert end.error is not None
    assert end.error.error == "ModuleNotFoundError: No module named 'there_is_no_such_thing'"
    assert end.error.remedy.startswith("add what is missing")


def test_a_program_that_does_nothing_is_ended_with_its_children(stores: Stores, tmp_path: Path) -> None:
    program = (
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    _, end, _ = run(stores, tmp_path, program, 3.0)
    assert end == DryRunEnd("3 s are over.")
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not alive(child), what="the child is gone, whose end nobody waits for")


def test_a_query_that_is_not_started_with_the_others_is_not_waited_for(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "SETTLE_S", 600.0)
    monkeypatch.setattr(check, "WAITING_S", 0.2)
    program = (
        "for said in ({'query': 'daily', 'begun': True, 'error': 'x'}, {'query': '', 'waiting': True}):\n"
        "    open(report, 'a').write(json.dumps(said) + '\\n')\n"
        "time.sleep(600)\n"
    )
    said, end, _ = run(stores, tmp_path, program, 60.0, "daily", "other")
    assert end == DryRunEnd("the others are started.")
    assert "other" not in said


def test_a_command_that_is_not_here_is_told_so(stores: Stores, tmp_path: Path) -> None:
    with scratch(stores, "orders") as made, pytest.raises(InvalidSettings, match=r"cannot be started on this host"):
        DryRun(made, "orders", [], tmp_path).run(["/no/such/command"], os.environ, tmp_path, 1.0)
