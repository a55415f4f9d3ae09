"""Setting aside: batches leave with their markers, the newest first, and come back as they were; also after a crash."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from ha.leadership import fenced_rename
from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from ha.outputs.merging import Merge, Merging
from ha.outputs.partition_commit import Moment, PartitionCommit
from ha.outputs.setting_aside import SettingAside
from store.errors import ConnectionLost, Invalid
from store.local import LocalFiles
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")
DAYS = {0: ("day=1", "day=11"), 999: ("day=1", "day=2"), 1000: ("day=2",), 1001: ("day=1", "day=3")}
"""The partitions of each batch, by its id."""


@pytest.fixture(autouse=True)
def published(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    journal = place.journal(commit=PartitionCommit())
    for number, (batch, days) in enumerate(DAYS.items()):
        place.publish(journal, Batch(number, WORDS, f"{number}", Moment(0, number)), f"{batch}", days=days, least=batch)


def rows(ids: Any) -> dict[str, str]:
    return {f"{day}/batch={batch}/part-0": f"{batch}" for batch in ids for day in DAYS[batch]}


def marked(place: Place) -> list[str]:
    return sorted(each.parent.name for each in (place.root / "out").rglob("_SUCCESS"))


def committed(place: Place) -> list[str]:
    """Let the next driver commit what it finds; return which partitions are marked then."""
    place.journal(commit=PartitionCommit()).commit_pending()
    return marked(place)


def aside(place: Place) -> tuple[SettingAside, str]:
    folder = place.output_folder()
    return SettingAside(folder), f"{folder.renames.inside}/aside"


@contextmanager
def watched(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each step readers see whole batches up to some id, and perhaps a part of the next; no marker is wrong."""
    rename = LocalFiles.rename

    def then_look(files: LocalFiles, source: str, target: str) -> None:
        rename(files, source, target)
        seen = sorted({int(path.split("batch=")[1].split("/")[0]) for path in place.found})
        assert rows(seen[:-1]).items() <= place.found.items()
        assert seen == list(DAYS)[: len(seen)]
        if "/batch=" in f"/{source}{target}":
            assert not set(DAYS[1001]) & set(marked(place))

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "rename", then_look)
        yield


@pytest.mark.parametrize(("stays", "keep", "again"), [
    (1000, ["day=11", "day=2"], ["day=1", "day=11", "day=2"]),
    (999, ["day=11"], ["day=1", "day=11", "day=2"]),
    (0, ["day=11"], ["day=1", "day=11"]),
    (-1, [], []),
])  # fmt: skip
def test_they_go_and_come_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, stays: int, keep: list[str], again: list[str]
) -> None:
    putting, trash = aside(place)
    assert marked(place) == ["day=1", "day=11", "day=2", "day=3"]
    for _ in range(2):
        with watched(place, monkeypatch):
            putting.put_away(stays, trash)
        assert place.found == rows(each for each in DAYS if each <= stays)
        assert marked(place) == keep
    assert committed(place) == again, "those that have rows left"
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "list", reversed_(LocalFiles.list))
        for _ in range(2):
            putting.bring_back(trash)
    assert place.found == rows(DAYS)
    gone = {day for batch, days in DAYS.items() if batch > stays for day in days}
    assert marked(place) == sorted(set(again) - gone), "rows have come, so it is not finished"
    assert committed(place) == ["day=1", "day=11", "day=2", "day=3"]
    journal = place.journal()
    assert not place.publish(journal, Batch(3, WORDS, "3"))
    assert (journal.newest, place.publish(journal, Batch(4, WORDS, "4"))) == (1001, True)


def reversed_(call: Callable[..., Any]) -> Callable[..., Any]:
    """A store owes no order."""
    return lambda *given: call(*given)[::-1]


@pytest.mark.parametrize(
    ("what", "left", "then"),
    [("put_away", [0], ["day=1", "day=11"]), ("bring_back", [*DAYS], ["day=1", "day=11", "day=2", "day=3"])],
)
def test_a_crash_after_each_call_is_gone_over_by_the_next_try(
    place: Place, what: str, left: list[int], then: list[str]
) -> None:
    def go() -> None:
        putting, trash = aside(place)
        putting.put_away(0, trash) if what == "put_away" else putting.bring_back(trash)

    if what == "bring_back":
        putting, trash = aside(place)
        putting.put_away(0, trash)
    shutil.copytree(place.root, kept := place.root.with_name(f"{place.root.name}-kept"))
    for calls in itertools.count():
        shutil.rmtree(place.root)
        shutil.copytree(kept, place.root)
        with pytest.MonkeyPatch.context() as patch, suppress(ConnectionLost):
            dies_after(calls, patch)
            go()
            break
        go()
        assert (place.found, committed(place)) == (rows(left), then), calls
    assert calls > 10


def dies_after(calls: int, patch: pytest.MonkeyPatch) -> None:
    made = itertools.count()

    def dying(call: Callable[..., None]) -> Callable[..., None]:
        def called(*given: Any, **more: Any) -> None:
            if next(made) >= calls:
                raise ConnectionLost("the process is dead")
            call(*given, **more)

        return called

    for name in ("rename", "make_directory", "delete"):
        patch.setattr(LocalFiles, name, dying(getattr(LocalFiles, name)))


def test_what_was_merged_with_later_batches_stays_where_it_is(place: Place) -> None:
    putting, trash = aside(place)
    Merging(place.output_folder(), lambda *_: None).begin(
        Merge("day=1", "merged-0-999-t", {"batch-0": 1, "batch-999": 3})
    )
    with pytest.raises(Invalid, match="Batches up to 999 of output 'output' are in 'merged-0-999-t'"):
        putting.put_away(998, trash)
    assert (place.found, len(marked(place))) == (rows(DAYS), 4)
    putting.put_away(999, trash)
    assert place.found == rows([0, 999])


def test_a_journal_gets_the_lines_that_it_had(place: Place) -> None:
    putting, _ = aside(place)
    before = place.names("line=")
    for lines in (["line=0~0~0~0a~words"], [], ["line=0~2~9~0a~words", "line=0~20~9~0a~words"], before):
        putting.number(lines)
        assert place.names("line=") == sorted(lines)
    assert place.names("every=") == []
    assert place.names("target=")
