"""The edits of HDFS, read from its edit log: in order, without refused requests, and only those of jobs."""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from ha.history import edits
from ha.history.events import Stored, load
from ha.sandbox import Sandbox
from leader.layout import tree as job_tree
from leader.layout.names import LeaderDirectory, newest
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import AlreadyExists, NotEmpty, NotFound, StoreError
from store.files import Files
from store.open import open_files
from tests.limits import HANGS_S, joined
from tests.patience import PATIENCE_S

ROOT = "hdfs://nameservice1/team/ha"
LATE = 32_503_680_000_000
"""Milliseconds since 1970, in the year 3000."""

log = logging.getLogger(__name__)


def record(number: int, operation: str, **fields: object) -> str:
    data = "".join(f"<{name}>{value}</{name}>" for name, value in {"TXID": number, **fields}.items())
    return f"<RECORD><OPCODE>OP_{operation}</OPCODE><DATA>{data}</DATA></RECORD>"


def segment(*records: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><EDITS><EDITS_VERSION>-67</EDITS_VERSION>{"".join(records)}</EDITS>'


def changes(*segments: str) -> list[tuple[str, ...]]:
    return [
        (each.job, each.operation, each.path, each.target) if each.target else (each.job, each.operation, each.path)
        for each in edits.stored(segments, ROOT)
    ]


def test_every_kind_of_change() -> None:
    inside, outside = "/team/ha/orders/1", "/team/output"
    found = changes(
        segment(
            record(1, "START_LOG_SEGMENT"),
            record(2, "MKDIR", PATH=f"{inside}/a", TIMESTAMP=LATE),
            record(3, "RENAME", SRC=f"{inside}/a", DST=f"{inside}/b", TIMESTAMP=LATE),
            record(4, "RENAME_OLD", SRC=f"{inside}/b", DST=f"{inside}/c", TIMESTAMP=LATE),
            record(5, "ADD", PATH=f"{inside}/file", MTIME=LATE),
            record(6, "ADD_BLOCK", PATH=f"{inside}/file"),
            record(7, "CLOSE", PATH=f"{inside}/file", MTIME=LATE),
            record(8, "DELETE", PATH=f"{inside}/file", TIMESTAMP=LATE),
            record(9, "SET_PERMISSIONS", SRC=inside),
            record(10, "RENAME", SRC=f"{inside}/out", DST=f"{outside}/part", TIMESTAMP=LATE),
            record(11, "MKDIR", PATH="/team/other", TIMESTAMP=LATE),
            record(12, "RENAME", SRC="/team/ha/.creating-x", DST="/team/ha/new", TIMESTAMP=LATE),
            record(13, "MKDIR", PATH="/team/ha/.creating-x/1", TIMESTAMP=LATE),
            record(14, "MKDIR", PATH="/team/hat/orders", TIMESTAMP=LATE),
            record(15, "RENAME", SRC=f"{inside}/c", DST="/team/ha/new/c", TIMESTAMP=LATE),
            record(16, "RENAME", SRC="/team/ha/.staging/x", DST="/team/ha/orders/2", TIMESTAMP=LATE),
            record(17, "DELETE", PATH="/team/ha/new", TIMESTAMP=LATE),
        )
    )
    assert found == [
        ("orders", "make", "1/a"),
        ("orders", "rename", "1/a", "1/b"),
        ("orders", "rename", "1/b", "1/c"),
        ("orders", "make", "1/file"),
        ("orders", "delete", "1/file"),
        ("orders", "delete", "1/out"),
        ("new", "make", "."),
        ("orders", "delete", "1/c"),
        ("new", "make", "c"),
        ("orders", "make", "2"),
        ("new", "delete", "."),
    ]


def test_names_that_xml_cannot_hold() -> None:
    escaped = record(1, "MKDIR", PATH="/team/ha/orders/a\\0001;b\\005c;&amp;c", TIMESTAMP=LATE)
    assert changes(segment(escaped)) == [("orders", "make", "a\x01b\\&c")]


def made(number: int) -> str:
    return record(number, "MKDIR", PATH=f"/team/ha/orders/{number}", TIMESTAMP=LATE)


def test_segments_in_any_order_and_twice() -> None:
    first, second = segment(made(1), made(2)), segment(made(3))
    assert changes(second, first, second) == [("orders", "make", str(number)) for number in (1, 2, 3)]
    assert changes() == []


def test_a_segment_that_is_missing_is_noticed() -> None:
    with pytest.raises(ValueError, match="has no transactions 2 to 4: give all of its segments"):
        changes(segment(made(1)), segment(made(5)))


@pytest.mark.parametrize("text", ["", "EDITS", "<EDITS>", segment(record(1, "MKDIR", TIMESTAMP="soon"))[:-20]])
def test_a_text_that_is_no_edit_log_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="That is not an edit log in XML"):
        changes(text)


def test_times_never_go_back_though_the_namenodes_clock_does() -> None:
    back = record(2, "MKDIR", PATH="/team/ha/orders/2", TIMESTAMP=LATE - 5000)
    times = [each.at for each in edits.stored([segment(made(1), back)], ROOT)]
    assert times[0] == times[1] > now()


def test_another_jobs_times_are_its_own() -> None:
    """Found by a series of drills: after the one that shifts clocks all times of the next ones were an hour off."""
    first, second = edits.stored(
        [
            segment(
                record(1, "MKDIR", PATH="/team/ha/payments/1", TIMESTAMP=LATE),
                record(2, "MKDIR", PATH="/team/ha/orders/1", TIMESTAMP=LATE - 3_600_000),
            )
        ],
        ROOT,
    )
    assert (first.job, second.job) == ("payments", "orders")
    assert round(first.at - second.at) == 3600


@pytest.fixture
def jobs(hdfs_uri: str) -> Iterator[BoundedFiles]:
    files = open_files(f"{hdfs_uri}/edits-{uuid.uuid4().hex[:8]}")
    files.call("test", lambda driver: driver.make_root(), PATIENCE_S)
    yield files
    files.close()


def executed(sandbox: Sandbox, files: BoundedFiles) -> list[Stored]:
    return edits.stored(sandbox.edits(), files.uri)


@pytest.mark.hdfs
def test_refused_requests_are_not_in_the_edit_log(sandbox: Sandbox, jobs: BoundedFiles) -> None:
    def done(operation: Callable[[Files], None]) -> None:
        jobs.call("test", operation, PATIENCE_S)

    def refused(operation: Callable[[Files], None], kind: type[StoreError]) -> None:
        with pytest.raises(kind):
            done(operation)

    began = now()
    done(lambda files: job_tree.create(files, "orders"))
    done(lambda files: files.make_directory("orders/a"))
    done(lambda files: files.make_directory("orders/b"))
    refused(lambda files: files.rename("orders/none", "orders/c"), NotFound)
    refused(lambda files: files.rename("orders/a", "orders/b"), AlreadyExists)
    refused(lambda files: files.delete("orders/none"), NotFound)
    refused(lambda files: files.make_directory("orders/none/a"), NotFound)
    refused(lambda files: job_tree.create(files, "orders"), AlreadyExists)
    done(lambda files: files.make_directory("orders/a/inner"))
    refused(lambda files: files.delete("orders/a"), NotEmpty)
    done(lambda files: files.rename("orders/a", "orders/c"))
    done(lambda files: files.delete("orders/b"))
    found = executed(sandbox, jobs)
    assert {event.job for event in found} == {"orders"}
    assert [(event.operation, event.path, event.target) for event in found] == [
        ("make", ".", ""),
        ("make", "a", ""),
        ("make", "b", ""),
        ("make", "a/inner", ""),
        ("rename", "a", "c"),
        ("delete", "b", ""),
    ]
    assert all(began - edits.TOLERANCE < event.at < now() + edits.TOLERANCE for event in found)


def _rename(files: Files, before: LeaderDirectory, after: LeaderDirectory) -> None:
    files.rename(f"orders/{before.name}", f"orders/{after.name}")


@pytest.mark.hdfs
def test_edits_are_in_the_order_of_execution(sandbox: Sandbox, jobs: BoundedFiles) -> None:
    """Several clients claim the same directory at once: each rename begins where the one before has ended."""
    jobs.call("test", lambda files: job_tree.create(files, "orders"), PATIENCE_S)
    start = threading.Barrier(4, timeout=HANGS_S)
    won: list[str] = []

    def claim() -> None:
        start.wait()
        for _ in range(25):
            names = [entry.name for entry in jobs.call("list", lambda files: files.list("orders"), PATIENCE_S)]
            before = newest(names)
            assert before is not None
            after = LeaderDirectory(before.epoch + 1, str(uuid.uuid4()))
            outcome = jobs.outcome("claim", partial(_rename, before=before, after=after), PATIENCE_S)
            if outcome.done:
                won.append(after.name)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    joined(*threads)
    _, *renames = executed(sandbox, jobs)
    assert sorted(won) == [each.target for each in renames]
    assert all(before.target == after.path for before, after in pairwise(renames))
    log.info("Of 100 claims %d were executed.", len(renames))


@pytest.mark.hdfs
def test_a_history_gets_the_edits_of_one_job(sandbox: Sandbox, jobs: BoundedFiles, tmp_path: Path) -> None:
    for name in ("orders", "bills"):
        jobs.call("test", partial(job_tree.create, job=name), PATIENCE_S)
    edits.save(sandbox.edits(), jobs.uri, "orders", tmp_path)
    edits.save(sandbox.edits(), jobs.uri, "orders", tmp_path)
    (found,) = load(tmp_path)
    assert found.job == "orders"
