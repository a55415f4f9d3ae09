"""Reading a journal from outside: what is there of each batch, also while it is on its way, or the leader changes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.lines import Line
from ha.outputs.merging import Merge, Merging
from ha.outputs.reading import JournalBatch, JournalReader
from ha.outputs.record import FILES, LOST, Record
from leader.job.fenced_directory import LOOKS, FencedDirectory
from leader.layout.packed_names import written
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.unit.ha.led import Led
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")
DAYS = ("day=1", "day=2")


def publish(place: Place, journal: Journal, *ids: int, file: str = "part-0") -> None:
    for number in ids:
        place.publish(
            journal, Batch(number, WORDS, f"{number}"), "x" * (number + 1), days=DAYS, file=file, least=number
        )


def undone(place: Place, number: int) -> Path:
    """Turn a complete batch into one of which no file was moved; return its folder."""
    (home,) = place.home.glob("out/output-*")
    ready = home / "ready" / f"{number}"
    (home / f"done/{number // 1000}/{number}").rename(ready)
    for day in DAYS:
        (ready / "rows").mkdir(exist_ok=True)
        (place.root / f"out/{day}/batch={number}").rename(ready / "rows" / day)
    return ready


def verified(place: Place, *ids: int) -> list[JournalBatch]:
    reader = JournalReader(place.directory)
    (output,) = reader.outputs()
    target = BoundedFiles(lambda: LocalFiles(place.root / "out", durable=False), uri=(place.root / "out").as_uri())
    place.opened.append(target)
    return list(reader.verified(output, list(ids), target))


def told(place: Place, *ids: int) -> list[tuple[int, str, list[str]]]:
    return [(each.batch, each.condition, each.missing) for each in verified(place, *ids)]


def test_outputs_are_told_apart_by_all_that_their_journals_say(place: Place) -> None:
    publish(place, journal := place.journal("my-out"), 0, 998, 1002)
    place.publish(journal, Batch(1002, WORDS, "1002"), days=DAYS)
    (home,) = place.home.glob("out/my-out-*")
    for name in ("region=b", "region=a", "mark=7", "mark=12"):
        (home / name).mkdir()
    (home / "ready/1003").mkdir()
    (place.home / "out/old-0123").mkdir()
    mine, old = JournalReader(place.directory).outputs()
    assert (mine.name, mine.folder, mine.target) == ("my-out", f"out/{home.name}", f"{place.root}/out")
    assert (mine.unfinished, mine.thousands, mine.regions, mine.complete_up_to) == ([1003], [0, 1], ["a", "b"], 12)
    assert (mine.flat, mine.replayed, mine.place, mine.behind) == (False, 1, "", [])
    assert mine.lines == sorted(each.name for each in home.glob("line=*"))
    assert (old.name, old.target, old.complete_up_to, old.replayed, old.lines) == ("old", "", -1, 0, [])


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (range(10_000), [[0, 998, 999], [1000, 1001]]),
        (range(998, 1000), [[998, 999]]),
        (range(999, 1001), [[999], [1000]]),
        (range(1000), [[0, 998, 999]]),
        (range(1000, 1001), [[1000]]),
        (range(1, 998), [[]]),
        (range(2000, 3000), []),
    ],
)
def test_complete_batches_come_a_thousand_at_a_time(place: Place, asked: range, found: list[list[int]]) -> None:
    publish(place, place.journal(), 0, 998, 999, 1000, 1001)
    reader = JournalReader(place.directory)
    (output,) = reader.outputs()
    assert list(reader.ids(output, asked)) == found


def test_what_was_decided_is_there_on_its_way_or_missed(place: Place) -> None:
    publish(place, place.journal(), 0, 1, 2, 3)
    out = place.root / "out"
    first, last = verified(place, 0, 3)
    assert (first.condition, first.partitions, first.files, first.bytes, first.after) == ("complete", 2, 2, 2, -1)
    assert (last.bytes, last.after, last.plan, last.rows, last.accepted) == (8, 2, "3", None, 0)
    (out / "day=2/batch=1/part-0").write_text("longer than it was")
    shutil.rmtree(out / "day=1/batch=2")
    assert told(place, 1, 2) == [
        (1, "gone since", ["day=2/batch=1/part-0"]), (2, "gone since", ["day=1/batch=2/part-0"]),
    ]  # fmt: skip
    ready = undone(place, 3)
    assert told(place, 3) == [(3, "unfinished", [])]
    (ready / "rows/day=1").rename(out / "day=1/batch=3")
    assert told(place, 3) == [(3, "unfinished", [])], "one is here, one is there"
    shutil.rmtree(ready / "rows/day=2")
    assert told(place, 3) == [(3, "lost", ["day=2/batch=3/part-0"])]
    (name,) = written(LOST, Record({"day=2": {"part-0": 4}}))
    (ready / name).mkdir()
    assert [(each.condition, each.missing, each.accepted) for each in verified(place, 3)] == [("unfinished", [], 1)]


def test_a_batch_whose_record_is_gone_or_damaged_is_unknown(place: Place) -> None:
    publish(place, place.journal(), 0, 1)
    for number, then in ((0, None), (1, f"{FILES}=1~1~AAAA")):
        (record,) = place.home.glob(f"out/output-*/done/0/{number}/{FILES}=*")
        record.rmdir() if then is None else record.rename(record.with_name(then))
    assert told(place, 0, 1, 7) == [(0, "unknown", []), (1, "unknown", []), (7, "unknown", [])]


def test_files_that_were_merged_are_found_in_the_one_that_has_them(place: Place) -> None:
    """The plans of two partitions name the same files, and each thousand has plans of its own."""
    publish(place, place.journal(flat=True), 0, 1, 1000, 1001, file="part-0.json")
    out = place.root / "out"
    merging = Merging(place.output_folder(), lambda *_: None)
    for day in DAYS:
        for first in (0, 1000):
            names = {f"batch-{each}.json": each + 1 for each in (first, first + 1)}
            merging.begin(merge := Merge(day, f"merged-{first}-{day[-1]}.json", names))
            (out / day / merge.target).write_text("".join((out / day / each).read_text() for each in names))
            for each in names:
                (out / day / each).unlink()
            if day == "day=1":
                assert merging.finish(merge)
    assert {each.condition for each in verified(place, 0, 1, 1000, 1001)} == {"complete"}
    (out / "day=1/merged-1000-1.json").write_text("cut")
    (out / "day=2/merged-0-2.json").unlink()
    assert told(place, 0, 1, 1000, 1001) == [
        *((each, "gone since", [f"day=2/batch-{each}.json"]) for each in (0, 1)),
        *((each, "gone since", [f"day=1/batch-{each}.json"]) for each in (1000, 1001)),
    ]


def test_a_reader_follows_the_job_to_its_next_leader(place: Place) -> None:
    publish(place, place.journal(), 0)
    stale = [place.directory() for _ in range(LOOKS)]
    Led(place.root / "jobs").claim("orders", "b:1")
    (place.home,) = (place.root / "jobs/orders").glob("0*")
    name = place.home.name
    place.leader.epoch, place.leader.session_id = int(name.partition("-")[0]), name.partition("-")[2]
    finds: Callable[[], FencedDirectory] = lambda: stale.pop() if stale else place.directory()  # noqa: E731
    reader = JournalReader(finds)
    assert [each.name for each in reader.outputs()] == ["output"]
    assert stale == []


def test_files_among_those_of_a_batch_that_were_not_decided_are_told(place: Place) -> None:
    publish(place, place.journal(), 0, 1)
    (place.root / "out/day=2/batch=1/part-9").write_text("rows")
    (place.root / "out/day=2/batch=1/.part-9.crc").touch()
    (place.root / "out/day=2/batch=1/_mark").touch()
    whole, mixed = verified(place, 0, 1)
    assert (whole.condition, whole.surplus) == ("complete", [])
    assert (mixed.condition, mixed.missing, mixed.surplus) == ("mixed", [], ["day=2/batch=1/part-9"])


def test_one_batch_is_looked_at_in_as_many_partitions_as_are_asked_for(place: Place) -> None:
    publish(place, place.journal(), 0, 1)
    for day in DAYS:
        for batch in range(2):
            (place.root / f"out/{day}/batch={batch}/part-0").unlink()
    reader = JournalReader(place.directory)
    (output,) = reader.outputs()
    with BoundedFiles(
        lambda: LocalFiles(place.root / "out", durable=False), uri=(place.root / "out").as_uri()
    ) as target:
        found = [reader.look(output, batch, target, most=most).missing for batch in range(2) for most in (0, 1, None)]
    first, second = ([f"{day}/batch={batch}/part-0" for day in DAYS] for batch in range(2))
    assert found == [[], first[:1], first, [], second[1:], second]
