"""The leader's looks at its books: what is read, how often, and what is told of a gap."""

import json
import shutil
from typing import Any

import msgspec
import pytest

from ha.outputs.record import FILES, Record
from ha.program.output_report import path_beside, read
from ha.spark.stored.ledger import Ledger
from ha.spark.stored.ledger_watch import PAUSE_S
from leader.layout.packed_names import written
from store.errors import ConnectionLost
from tests.unit.ha.spark.stored.ledger_job import IDENTITY, Job


def test_a_query_that_gives_each_batch_lacks_none(ledger_job: Job) -> None:
    for number in range(3):
        ledger_job.do(number)
        ledger_job.watch.committed("words", number)
    assert ledger_job.kept == []
    assert not ledger_job.whole()
    assert not ledger_job.books.gaps()
    assert [(each.name, each.lacking) for each in read(path_beside(ledger_job.report, "ledger"))] == [("clicks", 0)]


def test_a_batch_that_is_committed_and_not_published_is_told_once(ledger_job: Job) -> None:
    ledger_job.do(0)
    ledger_job.do(1, publish=False)
    for _ in range(3):
        ledger_job.watch.committed("words", 1)
        ledger_job.at += PAUSE_S
    said = "Output 'clicks' has a gap: it lacks batch 1, committed by query 'words': the rows are not published."
    assert ledger_job.kept == [("OutputGap", said, "words")]
    assert [each.lacking for each in read(path_beside(ledger_job.report, "ledger"))] == [1]
    assert len(ledger_job.whole()) == 1


def test_a_gap_of_an_older_thousand_stays_one(ledger_job: Job) -> None:
    """The leader looks at the newest thousand, but no later batch mends an older one."""
    for number in (0, 1, 2):
        ledger_job.do(number, publish=number != 1)
    ledger_job.watch.committed("words", 2)
    for number in range(3, 1010):
        (marker,) = written(FILES, Record({}, after=number - 1))
        (ledger_job.folder() / f"done/{number // 1000}/{number}/{marker}").mkdir(parents=True)
        (ledger_job.home / f"spark/words/commits/{number}").write_text("v1\n{}")
    for number in range(1000, 1010):
        ledger_job.at += PAUSE_S
        ledger_job.watch.committed("words", number)
    assert [each.lacking for each in read(path_beside(ledger_job.report, "ledger"))] == [1]
    ledger_job.take_over()
    ledger_job.kept.clear()
    ledger_job.watch.committed("words", 1009)
    assert len(ledger_job.told()) == 1, "a next leader lists what is kept"
    assert "it lacks batch 1, committed" in ledger_job.told()[0]


def test_a_function_that_skips_batches_is_not_blamed(ledger_job: Job) -> None:
    ledger_job.do(0, every=False)
    ledger_job.do(1, publish=False)
    ledger_job.watch.committed("words", 1)
    assert ledger_job.kept == []
    assert ledger_job.whole() == []


def test_at_rest_nothing_is_listed_and_at_work_one_folder_a_minute(ledger_job: Job) -> None:
    ledger_job.do(0)
    ledger_job.watch.committed("words", 0)
    said = "outputs, the output, its thousands, its batches; of one batch its record and its files"
    assert len(ledger_job.lists) == 6, said
    ledger_job.do(1)
    ledger_job.watch.committed("words", 1)
    assert len(ledger_job.lists) == 6 + 7, "the output is known, and there are two batches"
    ledger_job.at += PAUSE_S
    for _ in range(10):
        ledger_job.watch.committed("words", 1)
        ledger_job.at += PAUSE_S
    assert len(ledger_job.lists) == 13
    for number in range(2, 102):
        before = len(ledger_job.lists)
        for _ in range(2):
            ledger_job.do(number)
            ledger_job.watch.committed("words", number)
        assert len(ledger_job.lists) - before <= 2, "of a batch the record and the files, and a minute more of rest"
        ledger_job.at += PAUSE_S
    assert len(ledger_job.lists) <= 13 + 100


def test_what_is_published_while_it_looks_is_no_gap(ledger_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that a list has missed is asked for again."""
    ledger_job.do(0)
    names = Ledger.done
    missed: list[dict[int, int]] = []

    def late(books: Ledger, home: str, bucket: int) -> dict[int, int]:
        found = names(books, home, bucket)
        if not missed:
            missed.append(found)
            return {}
        return found

    monkeypatch.setattr(Ledger, "done", late)
    ledger_job.watch.committed("words", 0)
    assert missed
    assert ledger_job.kept == []


def test_nothing_is_told_while_a_query_is_put_back(ledger_job: Job) -> None:
    ledger_job.do(0)
    ledger_job.do(1, publish=False)
    (ledger_job.home / "rewinding").mkdir()
    ledger_job.watch.committed("words", 1)
    assert ledger_job.kept == []


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
def test_what_is_gone_or_forged_is_told_by_the_leader(ledger_job: Job, harm: Any, told: str) -> None:
    for number in range(3):
        ledger_job.do(number)
    harm(ledger_job)
    ledger_job.watch.committed("words", 2)
    assert told in ledger_job.whole()[0]
    assert told in ledger_job.kept[0][1]


def test_a_store_that_fails_is_asked_later(ledger_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger_job.do(0)
    ledger_job.do(1, publish=False)
    names = Ledger.names

    def away(_: Ledger, folder: str) -> list[str]:
        raise ConnectionLost(folder)

    monkeypatch.setattr(Ledger, "names", away)
    ledger_job.watch.committed("words", 1)
    monkeypatch.setattr(Ledger, "names", names)
    ledger_job.at += PAUSE_S
    ledger_job.watch.committed("words", 1)
    assert len(ledger_job.kept) == 1


def changing(**fields: Any) -> Any:
    return lambda record: msgspec.structs.replace(record, **fields)


FORGED = {
    "deleted": (lambda _: None, "what batch 1 consists of is not known: its record was deleted or changed."),
    "a file more": (
        changing(partitions={"": {"part-0": 4, "part-1": 9}}),
        "the record of batch 1 was changed: it names batch=1/part-1, which is not there.",
    ),
    "another file": (
        changing(partitions={"": {"part-1": 4}}),
        "the record of batch 1 was changed: it names batch=1/part-1, which is not there.",
    ),
    "a file less": (changing(partitions={"": {}}), "batch 1 has files that were not decided, such as batch=1/part-0."),
    "its bytes": (
        changing(partitions={"": {"part-0": 9}}),
        "the record of batch 1 was changed: it names batch=1/part-0, which is not there.",
    ),
    "its input": (changing(plan="another"), "batch 1 has other input than batch 1 of query 'words'."),
    "the batch before it": (
        changing(after=-1),
        "batch 0 was not decided by its journal: batch 1 was decided right after -1.",
    ),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_record_that_somebody_has_changed_is_told_as_it_goes_on(ledger_job: Job, how: str) -> None:
    """The leader has looked at it before; the next list of its thousand shows that it was changed."""
    change, said = FORGED[how]
    for number in range(5):
        ledger_job.do(number)
        ledger_job.watch.committed("words", number)
        ledger_job.at += PAUSE_S
    assert ledger_job.told() == []
    ledger_job.forge(1, change)
    ledger_job.rounds(8)  # two rounds: one may have begun
    assert ledger_job.told() == [f"Output 'clicks' has a gap: {said}"]
    assert [each.lacking for each in read(path_beside(ledger_job.report, "ledger"))] == [1]
    ledger_job.rounds(16)
    assert len(ledger_job.told()) == 1, "once"


@pytest.mark.parametrize("how", FORGED)
def test_a_record_that_somebody_has_changed_is_told_at_a_takeover(ledger_job: Job, how: str) -> None:
    change, said = FORGED[how]
    for number in range(9):
        ledger_job.do(number)
    ledger_job.forge(1, change)
    ledger_job.watch.committed("words", 8)
    assert ledger_job.told() == [f"Output 'clicks' has a gap: {said}"]


def test_a_record_that_is_as_it_was_again_is_no_gap_any_more(ledger_job: Job) -> None:
    for number in range(5):
        ledger_job.do(number)
    kept: list[Record] = []
    ledger_job.forge(1, kept.append)
    ledger_job.watch.committed("words", 4)
    assert len(ledger_job.told()) == 1
    marker, *_ = written(FILES, kept[0])
    (ledger_job.folder() / f"done/0/1/{marker}").mkdir()
    ledger_job.rounds(8)
    assert [each.lacking for each in read(path_beside(ledger_job.report, "ledger"))] == [0]


def test_files_that_are_gone_since_are_counted_and_no_gap(ledger_job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """Readers may have taken them away; a leader looks at one batch after the other, and nothing is said twice."""
    for number in range(3):
        ledger_job.do(number)
    (ledger_job.root / "out/batch=1/part-0").unlink()
    shutil.rmtree(ledger_job.root / "out/batch=2")
    ledger_job.watch.committed("words", 2)
    assert ledger_job.told() == []
    (shown,) = read(path_beside(ledger_job.report, "ledger"))
    assert (shown.lacking, shown.gone) == (0, 2)
    (said,) = [each for each in caplog.messages if "is gone since it was published" in each]
    assert "Output 'clicks': batch=2/part-0 of batch 2 is gone" in said


def test_what_was_counted_in_one_run_of_the_program_is_not_counted_in_the_next(ledger_job: Job) -> None:
    ledger_job.do(0)
    (ledger_job.root / "out/batch=0/part-0").unlink()
    ledger_job.watch.committed("words", 0)
    assert [each.gone for each in read(path_beside(ledger_job.report, "ledger"))] == [1]
    ledger_job.report = ledger_job.root / "report-2"
    ledger_job.watch.committed("words", 0)
    assert [(each.gone, each.lacking) for each in read(path_beside(ledger_job.report, "ledger"))] == [(0, 0)]


def test_a_file_of_somebody_else_among_those_of_a_batch_is_a_gap(ledger_job: Job) -> None:
    for number in range(3):
        ledger_job.do(number)
    (ledger_job.root / "out/batch=2/part-7").write_text("rows")
    (ledger_job.root / "out/batch=2/_mark").touch()
    ledger_job.watch.committed("words", 2)
    said = "Output 'clicks' has a gap: batch 2 has files that were not decided, such as batch=2/part-7."
    assert ledger_job.told() == [said]


def test_a_batch_that_is_gone_where_a_function_may_skip_some_is_told_by_the_next_one(ledger_job: Job) -> None:
    for number in range(3):
        ledger_job.do(number, every=False)
    shutil.rmtree(ledger_job.folder() / "done/0/1")
    ledger_job.watch.committed("words", 2)
    said = "Output 'clicks' has a gap: batch 1 is gone from its journal: batch 2 was decided right after 1."
    assert ledger_job.told() == [said]
