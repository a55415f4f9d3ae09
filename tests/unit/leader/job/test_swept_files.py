"""Swept files: all that a sweep has moved comes back, and what it has not made stays where it is."""

import pytest

from leader.job.swept_files import SweptFiles
from tests.unit.leader.owned import HOME, Owned


def swept(owned: Owned) -> tuple[SweptFiles, str]:
    for folder in ("spark", "spark/q", "spark/q/state"):
        owned.direct.make_directory(f"{HOME}/{folder}")
    owned.direct.make_directory(f"{HOME}/spark/q/state/0")
    files = SweptFiles(owned.own)
    name = files.begin()
    assert list(files.move(name, "q", ["state/0", "state/gone"])) == ["state/0"]
    assert owned.names("spark/q/state") == []
    return files, name


def test_what_was_swept_comes_back_and_its_folder_goes(owned: Owned) -> None:
    files, name = swept(owned)
    assert files.newest() == name
    assert files.undo(name) == (1, [])
    assert owned.names("spark/q/state") == ["0"]
    assert owned.names("trash") == []
    assert files.newest() is None


@pytest.mark.parametrize("foreign", ["foreign", "swept=q/a_zz", "swept=q/.._2fescaped", "swept=q/_2fabsolute"])
def test_what_no_sweep_has_moved_stays_and_is_told(owned: Owned, foreign: str) -> None:
    files, name = swept(owned)
    owned.direct.make_directory(f"{HOME}/trash/{name}/{foreign}")
    back, left = files.undo(name)
    assert (back, left) == (1, [f"trash/{name}/{foreign}"])
    assert owned.names("spark/q/state") == ["0"]
    assert owned.names(f"trash/{name}/{foreign}") == [], "it is there"


def test_a_place_that_is_taken_keeps_its_new_file_and_the_old_one_stays(owned: Owned) -> None:
    files, name = swept(owned)
    owned.direct.make_directory(f"{HOME}/spark/q/state/0")
    owned.direct.make_directory(f"{HOME}/spark/q/state/0/new")
    assert files.undo(name) == (0, ["spark/q/state/0"])
    assert owned.names("spark/q/state/0") == ["new"]
    assert files.newest() == name
    owned.direct.delete(f"{HOME}/spark/q/state/0", recursive=True)
    assert files.undo(name) == (1, []), "it is called again when there is room"
