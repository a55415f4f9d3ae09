"""``ha job roots --moves`` as people call it: which jobs should move, as commands, and why there are none."""

from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

import ha
from ha.groups import balancing
from ha.groups.overview import RootView
from ha.placement.place import home_of
from tests.patience import PATIENCE_S
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found = [(tmp_path / name).as_uri() for name in "ab"]
    monkeypatch.setenv("HA_FILES", ",".join(found))
    return found


def test_the_moves_of_a_fifth_of_the_jobs_are_said_and_nothing_moves(
    roots: list[str], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job for job in (f"job-{number}" for number in range(60)) if home_of(roots, job) == roots[0]][:10]
    with ExitStack() as stack:
        leads = [stack.enter_context(ha.lead(job, timeout=PATIENCE_S)) for job in jobs]
        batches, rates = count(), [90.0, 0.0]

        def overview(*_: object) -> list[RootView]:
            """Meanwhile each job completes one batch more than the one before it, and the last one none."""
            for number, each in enumerate(leads[:9]):
                for _batch in range(number + 1):
                    each.checkpoints.completed("daily", next(batches))
            return [RootView(root, [], rate) for root, rate in zip(roots, rates, strict=True)]

        monkeypatch.setattr(balancing, "overview", overview)
        shown = cli("job roots --moves").out
        found = cli("job roots --moves --json").json
        rates[1] = 90.0
        even = cli("job roots --moves").out
    assert "The most loaded root takes 2.00 times the mean." in shown
    first, second, then = shown.splitlines()[-3:]
    where = f"requests a second at {roots[0]}"
    assert first == f"ha job move {jobs[8]} --to {roots[1]}  # some 18.0 of the 90.0 {where}"
    assert second == f"ha job move {jobs[7]} --to {roots[1]}  # some 16.0 of the 72.0 {where}"
    assert then == "# Then that would be 1.24, with 2 jobs moved (at most 20%)."
    assert [each["job"] for each in found["moves"]] == [jobs[8], jobs[7]]
    assert (found["before"], found["why"]) == (2.0, "at most 20% of 10 jobs move at once")
    assert [each["root"] for each in found["roots"]] == roots
    assert "ha job move" not in even


def test_without_a_job_that_may_move_the_reason_is_said(
    roots: list[str], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = [RootView(root, [], rate) for root, rate in zip(roots, (90.0, 0.0), strict=True)]
    monkeypatch.setattr(balancing, "overview", lambda *_: views)
    assert cli("job roots --moves").out.splitlines()[-1] == "# No job moves: at most 20% of 0 jobs move at once."


def test_without_a_load_no_move_is_proposed(roots: list[str], cli: CommandLine) -> None:
    assert f"The load of {min(roots)} is not known" in cli("job roots --moves --interval 0.01", code=1).err
