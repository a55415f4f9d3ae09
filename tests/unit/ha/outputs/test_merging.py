"""Merging: no file is named twice, left out, or mixed with another's, and a merge that is only seen is made sure of."""

import random
from collections.abc import Callable, Sequence
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.merging import MOST_FILES, MOST_PATHS, PLAN, Merge, Merging, Rule, merge_in, plan
from ha.outputs.record import Record
from leader.layout.packed_names import written
from store.files import Entry
from tests.unit.ha.outputs.place import Place

PARTS = {"batch-0.json": "0\n", "batch-1.json": "1\n"}
MERGE = Merge("", "merged-0-1-a.json", {name: len(rows) for name, rows in PARTS.items()})


def test_a_merge_that_is_shown_and_forgotten_is_made_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NameNode that shows it ends, with the next change or a while later; its successor has never heard of it."""
    out = place.root / "out"
    out.mkdir()

    def concat(target: str, names: Sequence[str]) -> None:
        files = [place.root / name for name in names]
        (place.root / target).write_text("".join(each.read_text() for each in files))
        for each in files:
            each.unlink()

    def forget() -> None:
        for name, rows in {**PARTS, MERGE.target: ""}.items():
            (out / name).write_text(rows)

    def acknowledge(renames: FencedRename) -> None:
        while ends:
            ends.pop()()
        acknowledged(renames)

    acknowledged, ends = FencedRename.acknowledge, list[Callable[[], None]]()
    monkeypatch.setattr(FencedRename, "acknowledge", acknowledge)
    with closing(FencedRename(place.leader, out.as_uri())) as renames:
        folder = OutputFolder.of(renames, "output")
        merging = Merging(folder, concat)
        renames.make_folders(f"{renames.inside}/out", folder.home)
        merging.begin(MERGE)
        (out / MERGE.target).write_text("".join(PARTS.values()))
        ends.append(forget)
        assert merging.finish(MERGE)
        assert merging.pending() == []
    while ends:
        ends.pop()()
    assert {each.name: each.read_text() for each in out.iterdir() if each.name != "_room"} == {
        MERGE.target: "".join(PARTS.values())
    }


NOW = 10_000_000
OLD = 1_000_000


def entry(name: str, size: int = 10, modified_ms: int = OLD) -> Entry:
    return Entry(name, is_directory=False, size=size, modified_ms=modified_ms)


def row(*batches: int, **more: int) -> list[Entry]:
    return [entry(f"batch-{each}.json", **more) for each in batches]


def planned(entries: list[Entry], rule: Rule, newest: int = 10_000, partition: str = "day=1") -> list[Merge]:
    return plan(partition, entries, newest, NOW, rule, "t", "/out")


RULE = Rule(files=3, bytes=100, older_than_s=1.0)


def test_so_many_become_one_and_the_rest_waits() -> None:
    (found,) = planned(row(0, 1, 2, 3, 4), RULE)
    assert found == Merge("day=1", "merged-0-2-t.json", {f"batch-{each}.json": 10 for each in range(3)})
    assert (found.bytes, found.batches, found.newest, found.thousand) == (30, [0, 1, 2], 2, 0)


def test_the_rest_is_merged_if_that_is_said_and_nothing_becomes_one_alone() -> None:
    rule = Rule(3, 100, 1.0, rest=True)
    assert [each.batches for each in planned(row(*range(5)), rule)] == [[0, 1, 2], [3, 4]]
    assert [each.batches for each in planned(row(*range(4)), rule)] == [[0, 1, 2]]


def test_in_the_order_of_batches_not_of_names() -> None:
    (found,) = planned(row(10, 9, 100), RULE)
    assert list(found.files) == ["batch-9.json", "batch-10.json", "batch-100.json"]


def test_a_size_that_is_reached_closes_a_file() -> None:
    files = [entry(f"batch-{each}.json", 40) for each in range(4)]
    assert [each.batches for each in planned(files, RULE)] == [[0, 1], [2, 3]][:1]
    exact = [entry(f"batch-{each}.json", 50) for each in range(3)]
    assert [each.batches for each in planned(exact, RULE)] == [[0, 1]]


def test_what_passes_through() -> None:
    rule = Rule(2, 100, 1.0, rest=True)
    others = [
        entry("batch-0.json", 0), entry("batch-1.json", 100), entry("batch-2.orc"), entry("merged-3-4-x.json"),
        entry("batch-05.json"), entry("part-6.json"), Entry("batch-7.json", True, 0, OLD),
        entry("batch-8.json", modified_ms=NOW - 999), entry("batch-101.json"), entry("batch-9.json.zst"),
        entry("batch-10.json.zst"), entry("batch-11.snappy.parquet"), entry("batch-12.snappy.parquet"),
    ]  # fmt: skip
    assert not planned([*others, *row(50)], rule, newest=100)
    assert len(planned([*others, *row(50, 51)], rule, newest=100)) == 1
    assert planned([entry("batch-1.json", 99), entry("batch-2.json", 1)], rule)
    assert planned([entry("batch-8.json", modified_ms=NOW - 1000), *row(9)], rule, newest=9)


def test_files_of_other_kinds_and_other_thousands_are_not_mixed() -> None:
    rule = Rule(10, 100_000, 1.0, rest=True)
    files = [*row(998, 999, 1000, 1001), entry("batch-1002.json.gz"), entry("batch-1003.json.gz")]
    assert [each.batches for each in planned(files, rule)] == [[998, 999], [1000, 1001], [1002, 1003]]
    for suffix in (".json", ".txt", ".json.gz", ".txt.bz2"):
        (found,) = planned([entry(f"batch-{each}{suffix}") for each in range(2)], rule)
        assert found.target == f"merged-0-1-t{suffix}"


def test_a_folder_that_cannot_be_named_is_left_alone() -> None:
    assert not planned(row(0, 1, 2), RULE, partition="day=1,2")


def test_no_request_is_too_long() -> None:
    partition = f"day={'x' * 200}"
    found = planned(row(*range(1000)), Rule(1000, 1 << 40, 1.0, rest=True), partition=partition)
    assert sum(len(each.files) for each in found) == 1000
    for each in found:
        assert len(each.files) <= MOST_FILES
        assert sum(len(f"/out/{partition}/{name},") for name in each.files) <= MOST_PATHS
    (most, rest) = planned(row(*range(600)), Rule(1000, 1 << 40, 1.0, rest=True), partition="")
    assert (len(most.files), len(rest.files)) == (MOST_FILES, 100)


files = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(0, 120), st.sampled_from([".json", ".txt.gz", ".csv"])),
    unique_by=lambda each: each[0], max_size=60,
)  # fmt: skip
rules = st.builds(Rule, st.integers(2, 10), st.integers(1, 300), st.just(1.0), st.booleans())


@given(files, rules, st.integers(-1, 3000), st.randoms(use_true_random=False))
def test_each_file_is_in_one_plan_at_most_and_no_plan_breaks_a_rule(
    found: list[tuple[int, int, str]], rule: Rule, newest: int, mixed: random.Random
) -> None:
    entries = [entry(f"batch-{batch}{suffix}", size) for batch, size, suffix in found]
    mixed.shuffle(entries)
    sizes = {each.name: each.size for each in entries}
    merges = planned(entries, rule, newest)
    named = [name for each in merges for name in each.files]
    assert len(named) == len(set(named))
    assert len({each.target for each in merges}) == len(merges)
    for each in merges:
        assert each.files.items() <= sizes.items()
        assert each.batches == [found[0] for found in map(layout.batch_of, each.files) if found]
        assert each.newest <= newest
        assert {batch // layout.BUCKET for batch in each.batches} == {each.thousand}
        assert 2 <= len(each.files) <= rule.files
        assert each.bytes <= rule.bytes
        assert not each.target.endswith(".csv")
        assert {name.partition(".")[2] for name in [*each.files, each.target]} == {each.target.partition(".")[2]}
    if rule.rest:  # again, with what is left, gives nothing more than what size has cut
        left = [each for each in entries if each.name not in named]
        assert all(len(each.files) > 1 for each in planned(left, rule, newest))


def test_it_has_happened_or_may_happen_or_cannot() -> None:
    (merge,) = planned(row(0, 1, 2), RULE)
    before = {each.name: each.size for each in row(0, 1, 2)}
    begun = {**before, merge.target: 0}
    after = {merge.target: 30, "batch-3.json": 10}
    assert [merge.done(each) for each in (before, begun, after)] == [False, False, True]
    assert [merge.possible(each) for each in (before, begun, after)] == [True, True, False]
    assert not merge.possible({**before, "batch-1.json": 9})


def test_a_plan_is_read_as_it_was_written_and_a_part_of_it_is_none() -> None:
    merge = Merge("day=1", "merged-0-999-t.json", {f"batch-{each}.json": each * 7 for each in range(1000)})
    names = written(PLAN, merge)
    assert merge_in(names) == merge
    assert len(names) > 1
    assert merge_in(names[:-1]) is None
    assert merge_in([]) is None
    assert merge_in(written(PLAN, Merge("", "x", {}))) is None


def test_what_of_a_flat_batch_is_in_its_place() -> None:
    record = Record({"day=1": {"part-0-u.json": 5}, "day=2": {"part-1-u.json": 6}}, flat=True)
    listed = {"day=1": {"batch-7.json": 5, "batch-8.json": 5}, "day=2": {"batch-8.json": 6}}
    assert record.standing(7, listed) == Record({"day=1": {"part-0-u.json": 5}}, flat=True)
    assert record.without(record.standing(7, listed)) == Record({"day=2": {"part-1-u.json": 6}}, flat=True)
    folders = Record(record.partitions)
    assert folders.standing(7, {"day=1": {"part-0-u.json": 5}}) == Record({"day=1": {"part-0-u.json": 5}})


def test_names_of_files_in_a_flat_output() -> None:
    assert layout.file(7, "part-00000-u-c000.json.gz") == "batch-7.json.gz"
    assert layout.file(7, "part-00000-u.c000.txt") == "batch-7.txt"  # with partition columns
    assert layout.file(7, "part-00000-u.c000") == "batch-7"
    assert layout.file(7, "part-00000-u.cold.txt") == "batch-7.cold.txt"
    assert layout.file(7, "part-00000") == "batch-7"
    record = Record({"day=1": {"part-0.json": 5}}, flat=True)
    assert (record.folder("day=1", 7), record.place("day=1", 7)) == ("day=1", "day=1/batch-7.json")
    assert (
        Record(record.partitions).folder("day=1", 7) == Record(record.partitions).place("day=1", 7) == "day=1/batch=7"
    )
    assert layout.batch_of("batch-7.json.gz") == (7, ".json.gz")
    assert layout.batch_of("batch-7") == (7, "")
    assert layout.batch_of("batch=7") is None
    assert layout.batch_of("batch-07.json") is None
