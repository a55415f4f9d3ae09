"""Merging: what is only seen to be merged is made sure of before its plan is put away."""

from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from ha.leadership.fenced_rename import FencedRename
from ha.outputs.folder import OutputFolder
from ha.outputs.merge_plan import Merge
from ha.outputs.merging import Merging
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
