"""Merging, and ``ha output merge``: each file is in one plan, and what cannot be done is dropped; beside crashes at
every call, which tests/unit/ha/outputs/test_through_crashes.py has."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from ha.cli.commands import exit_code
from ha.leadership import fenced_rename
from ha.outputs import job_outputs
from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from ha.outputs.merging import Merging, Rule, merges
from store.errors import Conflict, Refused
from tests.unit.ha.led import Led
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")
DAYS = ("day=1", "day=11")
NOW = Rule(files=2, older_than_s=0.0)


class LocalConcat:
    """What a NameNode does in one step, on a local disk."""

    def __init__(self, uri: str, *, address: str = "", ca: str = "") -> None:
        self.root, self.told = Path(uri.removeprefix("file://")), (address, ca)

    def __call__(self, path: str, sources: Sequence[str]) -> None:
        (self.root / path).write_text("".join((self.root / each).read_text() for each in sources))
        for each in sources:
            (self.root / each).unlink()

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def published(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    journal = place.journal(flat=True)
    for number in range(4):
        place.publish(journal, Batch(number, WORDS, f"{number}"), f"{number}\n", days=DAYS, file="part-0.json")


def merging_of(place: Place) -> Merging:
    folder = place.output_folder()
    return Merging(folder, LocalConcat(folder.renames.root))


def planned(merging: Merging, newest: int = 3, partition: str = "") -> list[Any]:
    return list(merging.planned(newest, merging.now_ms(), NOW, "t", partition))


def told(plans: list[Any]) -> list[tuple[str, list[int]]]:
    return [(each.partition, each.batches) for each in plans]


def rows(place: Place) -> list[str]:
    return sorted(f"{each.parent.name} {row}" for each in (place.root / "out").rglob("*.json")
                  for row in each.read_text().split())  # fmt: skip


def test_files_of_a_plan_that_waits_are_in_no_other_one(place: Place) -> None:
    merging = merging_of(place)
    all_of_them = planned(merging)
    assert told(all_of_them) == [(day, ids) for day in DAYS for ids in ([0, 1], [2, 3])]
    assert len({each.target for each in all_of_them}) == 4, "plans of all partitions share a folder"
    merging.begin(all_of_them[0])
    assert merging.pending() == merges(place.output_folder()) == all_of_them[:1]
    assert told(planned(merging)) == told(all_of_them[1:])
    assert told(planned(merging, 2)) == [("day=11", [0, 1])]
    assert told(planned(merging, partition="/day=11/")) == told(all_of_them[2:])


def test_the_next_process_sweeps_what_is_no_plan_and_does_those_that_are(place: Place) -> None:
    before = rows(place)
    for each in planned(merging := merging_of(place))[:2]:
        merging.begin(each)
    home = next(place.home.glob("out/output-*/merging"))
    (home / "merged-7-8-x.json-new").mkdir()
    (home / "left").mkdir()
    merging = merging_of(place)
    merging.sweep()
    assert sorted(each.name for each in home.iterdir()) == sorted(each.target for each in merging.pending())
    assert [merging.finish(each) for each in merging.pending()] == [True, True]
    assert (merging.pending(), told(merges(place.output_folder()))) == ([], [("day=1", [0, 1]), ("day=1", [2, 3])])
    assert sorted(each.name[:9] for each in (place.root / "out/day=1").glob("*.json")) == ["merged-0-", "merged-2-"]
    assert rows(place) == before
    assert told(planned(merging)) == [("day=11", [0, 1]), ("day=11", [2, 3])]


def test_a_plan_of_which_a_file_is_gone_is_dropped_with_its_empty_file(place: Place) -> None:
    merging = merging_of(place)
    merging.begin(plan := planned(merging)[0])
    gone = place.root / "out/day=1/batch-1.json"
    gone.unlink()
    (gone.parent / plan.target).touch()
    assert not merging.finish(plan)
    assert (merging.pending(), merges(place.output_folder())) == ([], [])
    assert not (gone.parent / plan.target).exists()
    assert rows(place) == [f"{day} {each}" for day in DAYS for each in range(4) if (day, each) != ("day=1", 1)]


def test_nothing_is_merged_while_a_query_is_put_back(place: Place) -> None:
    merging, before = merging_of(place), rows(place)
    merging.begin(plan := planned(merging)[0])
    (place.home / "rewinding/words").mkdir(parents=True)
    with pytest.raises(Conflict, match="A query of the job is being put back"):
        merging.finish(plan)
    assert (rows(place), merging.pending()) == (before, [plan])
    assert len(list((place.root / "out").rglob("*.json"))) == 8


@pytest.fixture
def merge(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("HA_ZOOKEEPER", "")
    monkeypatch.setattr(job_outputs, "Concat", LocalConcat)

    def asked(*arguments: str) -> list[Any]:
        capsys.readouterr()
        files = (place.root / "jobs").as_uri()
        code = exit_code(
            ["output", "merge", "orders", "--files", files, "--json", "--files-each", "2", "--older-than", "1 ms",
             *arguments]
        )  # fmt: skip
        rows = json.loads(capsys.readouterr().out)
        assert code == any(each["result"] == "refused" for each in rows)
        return [(each["result"], each["partition"], each["batches"], each["files"], each["bytes"]) for each in rows]

    return asked


def test_an_operator_merges_what_is_complete_and_first_what_waits(place: Place, merge: Any) -> None:
    before = rows(place)
    merging = merging_of(place)
    merging.begin(waits := planned(merging, partition="day=11")[1])
    (home,) = place.home.glob("out/output-*")
    (home / "ready/3").mkdir()  # batch 3 is on its way
    every = [("day=11", [2, 3]), ("day=1", [0, 1]), ("day=11", [0, 1])]
    assert merge("--dry-run") == [("would be merged", day, ids, 2, 4) for day, ids in every]
    assert (rows(place), merging.pending()) == (before, [waits])
    assert merge("--partition", "day=1") == [("merged", day, ids, 2, 4) for day, ids in every[:2]]
    (home / "ready/3").rmdir()
    assert merge("output") == [("merged", day, ids, 2, 4) for day, ids in (("day=1", [2, 3]), ("day=11", [0, 1]))]
    assert (merge(), rows(place)) == ([], before)


def test_what_the_store_refuses_is_said_and_stays(place: Place, merge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("encryption zone")

    before = rows(place)
    with monkeypatch.context() as patch:
        patch.setattr(LocalConcat, "__call__", refuse)
        assert {each[0] for each in merge()} == {"refused"}
    assert rows(place) == before


def test_it_goes_on_in_the_directory_of_the_next_leader(
    place: Place, merge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, claims, before = Merging.begin, ["b", "c"], rows(place)

    def then_claimed(merging: Merging, plan: Any) -> None:
        begin(merging, plan)
        if claims:
            Led(place.root / "jobs").claim("orders", claims.pop())

    monkeypatch.setattr(Merging, "begin", then_claimed)
    assert [each[:3] for each in merge()] == [("merged", day, ids) for day in DAYS for ids in ([0, 1], [2, 3])]
    assert rows(place) == before
