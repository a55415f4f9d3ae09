"""A bug of the track record is reproduced, and one without a mend to take out says so."""

import pytest
from click.testing import CliRunner

from tests.system.track_record.__main__ import main
from tests.system.track_record.bugs import BUGS, rows

FAST = next(bug for bug in BUGS.values() if bug.test.endswith("test_namenodes_take_turns"))


@pytest.mark.slow
def test_a_test_fails_without_its_mend_and_passes_with_it() -> None:
    done = CliRunner().invoke(main, [f"{FAST.number}"])
    assert done.exit_code == 0, done.output
    assert f"With the mend taken out of store/hadoop_errors.py {FAST.test} fails." in done.output
    assert "On the code as it is it passes." in done.output


def test_a_bug_that_is_not_there_is_one_sentence() -> None:
    done = CliRunner().invoke(main, ["x"])
    assert (done.exit_code, done.output) == (2, "There is no bug 'x': make reproduce lists those there are.\n")


def test_one_that_is_not_reproduced_says_why() -> None:
    bug = next(each for each in BUGS.values() if each.why_not)
    done = CliRunner().invoke(main, [f"{bug.number}"])
    assert done.exit_code == 1
    assert f"It is not reproduced: {bug.why_not}." in done.output


def test_without_a_number_each_bug_is_listed() -> None:
    done = CliRunner().invoke(main)
    assert (done.exit_code, done.output.count("\n")) == (0, len(rows()))
