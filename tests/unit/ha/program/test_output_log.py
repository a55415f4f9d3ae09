"""Output logs: a new one for each run, the last lines of one, and no more than a few on a host."""

from pathlib import Path

import pytest

from ha.program import output_log


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_a_run_has_a_log_that_only_its_user_reads(home: Path) -> None:
    path = output_log.new("orders", 1, home / "link")
    assert (home / "link").resolve() == path
    assert path.parent == home / "state/hybrid-ha/logs/orders"
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent)] == [0o600, 0o700]


def test_those_of_old_runs_go(home: Path) -> None:
    made = [output_log.new("orders", number, home / "link") for number in range(output_log.RUNS + 2)]
    output_log.before(made[-1]).touch()
    assert output_log.new("orders", 99, home / "link") not in made
    assert len(output_log.runs("orders")) == output_log.RUNS
    assert output_log.runs("orders")[-2:-1] == made[-1:]
    assert output_log.parts(made[-1]) == [output_log.before(made[-1]), made[-1]]
    assert output_log.runs("shop") == []


def test_without_a_place_the_log_is_kept_where_the_run_has_its_files(home: Path) -> None:
    (home / "state").touch()
    link = home / "link"
    link.symlink_to("gone")
    assert output_log.new("orders", 1, link) == link
    assert not link.is_symlink()


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("", ""),
        ("one", "one"),
        ("one\ntwo\n\n", "one\ntwo"),
        ("".join(f"{number}\n" for number in range(80)), "\n".join(map(str, range(30, 80)))),
        ("x" * 3000 + "\n" + "y" * 3000 + "\n", "y" * 3000),
        ("x" * 9000, "x" * 4000),
    ],
)
def test_the_last_lines(home: Path, text: str, last: str) -> None:
    (home / "log").write_text(text)
    assert output_log.last_lines(home / "log") == last
    assert output_log.last_lines(home / "none") == ""
