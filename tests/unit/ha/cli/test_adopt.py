"""``ha adopt``: what can be refused without the lease takes no epoch, and its end is no alarm."""

import json
from pathlib import Path

import pytest

from ha.cli import exit_code
from ha.cli.adopt_export import refusals_as_errors
from store.errors import ConnectionLost, Unknown

pytestmark = pytest.mark.usefixtures("quick")


def checkpoint(folder: Path) -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"x"}')
    (folder / "offsets" / "0").write_text("v1")
    return folder


def test_a_refused_adoption_takes_no_epoch(quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["adopt", "orders", "daily", (tmp_path / "nothing").as_uri()]) == 1
    assert not quick.exists()
    there = checkpoint(tmp_path / "there")
    assert exit_code(["adopt", "orders", "daily", there.as_uri()]) == 0
    (before,) = [each.name for each in (quick / "orders").iterdir()]
    assert exit_code(["adopt", "orders", "daily", there.as_uri()]) == 1
    assert "has a checkpoint already: add --replace" in capsys.readouterr().err
    assert [each.name for each in (quick / "orders").iterdir()] == [before]


def test_an_adoption_says_so_in_the_history_and_revokes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert exit_code(["adopt", "orders", "daily", checkpoint(tmp_path / "there").as_uri(), "--json"]) == 0
    assert not [each for each in caplog.records if each.levelname == "WARNING" and "revoked" in each.getMessage()]
    capsys.readouterr()
    assert exit_code(["history", "orders", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["epoch"], row["ended"]) == (1, "adopted")


def test_a_copy_whose_end_is_not_known_says_that_it_may_be_run_again() -> None:
    with (
        pytest.raises(Unknown, match=r"not known whether .* was made: run the command again.*\(No answer.\)"),
        refusals_as_errors(),
    ):
        raise ConnectionLost("No answer.")


def test_a_list_that_fails_speaks_of_no_change() -> None:
    with pytest.raises(ConnectionLost, match=r"^No answer.$"), refusals_as_errors(changes=False):
        raise ConnectionLost("No answer.")
