"""The ledger of a job: what is read, how often, and what is told of a gap."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ha.checkpoints import contents
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch, plan_of
from ha.outputs.lines import Line
from ha.program.output_report import path_beside, read
from ha.spark.stored.ledger import PAUSE_S, Ledger, LedgerWatch
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import ConnectionLost
from store.files import Entry
from store.local import LocalFiles
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")

IDENTITY = "00000000-0000-0000-0000-00000000000a"


class Job(Place):
    """A job whose query publishes and commits batches; its leader's lists are counted."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        files = BoundedFiles(lambda: LocalFiles(root / "jobs", durable=False), uri=(root / "jobs").as_uri())
        self.opened.append(files)
        self.lists: list[str] = []
        self.at = 0.0
        self.kept: list[tuple[str, str, str]] = []
        directory = FencedDirectory(files, "orders", LeaderDirectory.parse(self.home.name), 5.0)  # type: ignore[arg-type]
        self.books = Ledger(self._counting(directory))
        leadership = SimpleNamespace(own=self._counting(directory), job="orders", keep_failure=self._keep)
        self.report = root / "report"
        self.watch = LedgerWatch(cast("Leadership", leadership), lambda: self.report, lambda: self.at)
        self.line = Line(IDENTITY, "words")
        (self.home / "spark/words/commits").mkdir(parents=True)
        (self.home / "spark/words/offsets").mkdir()
        (self.home / "spark/words/metadata").write_text(json.dumps({"id": IDENTITY}))
        self.out = self.journal("clicks")

    def _counting(self, directory: FencedDirectory) -> Any:
        def listed(folder: str = "") -> list[Entry]:
            self.lists.append(folder)
            return directory.list(folder)

        return SimpleNamespace(list=listed, read=directory.read)

    def _keep(self, kind: str, message: str, *, query: str) -> None:
        self.kept.append((kind, message, query))

    def do(self, number: int, *, every: bool = True, publish: bool = True) -> None:
        said = {"batchWatermarkMs": 0, "batchTimestampMs": number, "conf": {}}
        offsets = f'v1\n{json.dumps(said)}\n{{"logOffset":{number}}}'.encode()
        (self.home / f"spark/words/offsets/{number}").write_bytes(offsets)
        if publish:
            plan = plan_of(contents.offsets(offsets), offsets)
            self.publish(self.out, Batch(number, self.line, plan, every=every))
        (self.home / f"spark/words/commits/{number}").write_text("v1\n{}")

    def whole(self) -> list[str]:
        (home,) = [each.name for each in (self.home / "out").iterdir()]
        return [each.why for each in self.books.whole(home, {}, {}, ())]

    def folder(self) -> Path:
        (found,) = (self.home / "out").iterdir()
        return found


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for each in made.opened:
        each.close()


def test_a_query_that_gives_each_batch_lacks_none(job: Job) -> None:
    for number in range(3):
        job.do(number)
        job.watch.committed("words", number)
    assert job.kept == []
    assert not job.whole()
    assert not job.books.gaps()
    assert [(each.name, each.lacking) for each in read(path_beside(job.report, "ledger"))] == [("clicks", 0)]


def test_a_batch_that_is_committed_and_not_published_is_told_once(job: Job) -> None:
    job.do(0)
    job.do(1, publish=False)
    for _ in range(3):
        job.watch.committed("words", 1)
        job.at += PAUSE_S
    said = "Output 'clicks' has a gap: it lacks batch 1, committed by query 'words': the rows are not published."
    assert job.kept == [("OutputGap", said, "words")]
    assert [each.lacking for each in read(path_beside(job.report, "ledger"))] == [1]
    assert len(job.whole()) == 1


def test_a_gap_of_an_older_thousand_stays_one(job: Job) -> None:
    """The leader looks at the newest thousand, but no later batch mends an older one."""
    for number in (0, 1, 2):
        job.do(number, publish=number != 1)
    job.watch.committed("words", 2)
    (job.folder() / "done/1").mkdir()
    for number in range(3, 1010):
        (job.folder() / f"done/{number // 1000}/{number}").mkdir()
        (job.home / f"spark/words/commits/{number}").write_text("v1\n{}")
    for number in range(1000, 1010):
        job.at += PAUSE_S
        job.watch.committed("words", number)
    assert [each.lacking for each in read(path_beside(job.report, "ledger"))] == [1]


def test_a_function_that_skips_batches_is_not_blamed(job: Job) -> None:
    job.do(0, every=False)
    job.do(1, publish=False)
    job.watch.committed("words", 1)
    assert job.kept == []
    assert job.whole() == []


def test_the_mark_follows_the_program(job: Job) -> None:

    def marks() -> list[str]:
        return sorted(each.name for each in job.folder().glob("every=*"))

    job.do(0, every=False)
    assert marks() == []
    job.do(1)
    job.do(2)
    assert marks() == ["every=0~1"]
    job.do(3, every=False)
    assert marks() == []
    job.out = job.journal("clicks")
    job.do(4)
    assert marks() == ["every=0~4"]


def test_at_rest_nothing_is_listed_and_at_work_one_folder_a_minute(job: Job) -> None:
    job.do(0)
    job.watch.committed("words", 0)
    job.do(1)
    job.watch.committed("words", 1)
    assert len(job.lists) == 5, "at the takeover and after the first batch: outputs, the output, its newest batches"
    job.at += PAUSE_S
    for _ in range(10):
        job.watch.committed("words", 1)
        job.at += PAUSE_S
    assert len(job.lists) == 5
    for number in range(2, 12):
        job.do(number)
        before = len(job.lists)
        job.watch.committed("words", number)
        job.watch.committed("words", number)
        assert len(job.lists) - before <= 1
        job.at += PAUSE_S
    assert len(job.lists) == 15


def test_what_is_published_while_it_looks_is_no_gap(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that a list has missed is asked for again."""
    job.do(0)
    names = Ledger.done
    missed: list[list[int]] = []

    def late(books: Ledger, home: str, bucket: int) -> list[int]:
        found = names(books, home, bucket)
        if not missed:
            missed.append(found)
            return []
        return found

    monkeypatch.setattr(Ledger, "done", late)
    job.watch.committed("words", 0)
    assert missed
    assert job.kept == []


def test_nothing_is_told_while_a_query_is_put_back(job: Job) -> None:
    job.do(0)
    job.do(1, publish=False)
    (job.home / "rewinding").mkdir()
    job.watch.committed("words", 1)
    assert job.kept == []


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda job: shutil.rmtree(job.folder() / "done/0/1"), "it lacks batch 1, committed"),
        (lambda job: shutil.rmtree(job.folder() / "done/0"), "it lacks 3 batches from 0 to 2, committed"),
        (lambda job: (job.folder() / "done/0/9").mkdir(), "it has batches up to 9 of query 'words', whose checkpoint"),
        (
            lambda job: (job.home / "spark/words/metadata").write_text(json.dumps({"id": f"b{IDENTITY[1:]}"})),
            "that query is another one now (b0",
        ),
    ],
)
def test_what_is_gone_or_forged_is_told_by_the_leader(job: Job, harm: Any, told: str) -> None:
    for number in range(3):
        job.do(number)
    harm(job)
    job.watch.committed("words", 2)
    assert told in job.whole()[0]
    if "up to 9" not in told:  # that costs more than a list a minute
        assert told in job.kept[0][1]


def test_a_batch_with_other_input_is_told(job: Job) -> None:
    job.do(0)
    (home,) = [each.name for each in (job.home / "out").iterdir()]
    said = json.loads('{"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}')
    data = f'v1\n{json.dumps(said)}\n{{"logOffset":0}}'.encode()
    right = plan_of(contents.offsets(data), data)
    assert job.books.whole(home, {0: -1}, {0: right}, {0}) == []
    (gap,) = job.books.whole(home, {0: -1}, {0: "another"}, {0})
    assert gap.why == "batch 0 has other input than batch 0 of query 'words'."


def test_a_store_that_fails_is_asked_later(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    job.do(0)
    job.do(1, publish=False)
    names = Ledger.names

    def away(_: Ledger, folder: str) -> list[str]:
        raise ConnectionLost(folder)

    monkeypatch.setattr(Ledger, "names", away)
    job.watch.committed("words", 1)
    monkeypatch.setattr(Ledger, "names", names)
    job.at += PAUSE_S
    job.watch.committed("words", 1)
    assert len(job.kept) == 1
