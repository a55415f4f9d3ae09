"""``ha move`` and ``ha balance`` as people call them: a real move between two directories, and what is refused."""

import json
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

import ha
from ha.cli import move as module
from ha.cli.commands import exit_code
from ha.groups.balancing import measuring
from ha.groups.balancing.plan import Move, Plan
from ha.groups.overview import RootView
from ha.groups.placement.place import home_of

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The root of the job ``orders``, which nobody leads, and another one."""
    monkeypatch.setenv("HA_SHORT_TTL", "15")  # a machine that stalls for 4 s takes no leadership from the mover
    found = [(tmp_path / name).as_uri() for name in "ab"]
    monkeypatch.setenv("HA_FILES", ",".join(found))
    with ha.lead("orders", timeout=30.0) as leadership:
        leadership.checkpoints.completed("daily", 3)
    home = home_of(found, "orders")
    return [home, *(each for each in found if each != home)]


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_a_job_that_nobody_leads_moves_and_goes_on_there(roots: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["move", "orders", "--to", roots[1], "--json"]) == 0
    done = said(capsys)
    assert (done["source"], done["target"], done["leader"], done["pause"]) == (*roots, "", None)
    with ha.lead("orders", timeout=30.0) as leadership:
        assert leadership.directory.startswith(roots[1])
        newest = leadership.checkpoints.latest("daily")
        assert newest is not None
        assert newest.batch == 3
    assert exit_code(["move", "orders", "--to", roots[1]]) == 0
    assert f"orders: it is at {roots[1]}" in capsys.readouterr().out
    assert exit_code(["move", "orders", "--undo"]) == 0
    assert f"orders: it is at {roots[1]}" in capsys.readouterr().out
    assert exit_code(["move", "orders", "--to", roots[0]]) == 1
    assert "it has moved lately, and stays for 30 min more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "Give either --to ROOT or --undo"),
        (["--to", "x", "--undo"], "Give either --to ROOT or --undo"),
        (["--to", "hdfs://ns9/ha"], "name one of the roots"),
        (["--to", ""], "name one of the roots"),
    ],
)
def test_a_wrong_call_is_refused(
    roots: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], why: str
) -> None:
    assert exit_code(["move", "orders", *flags]) == 2
    assert why in capsys.readouterr().err
    assert roots


def test_one_root_is_no_group(roots: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["move", "orders", "--to", roots[0], "--files", roots[0]]) != 0
    assert "which is one root" in capsys.readouterr().err
    assert exit_code(["balance", "--files", roots[0]]) != 0
    assert "which is one root" in capsys.readouterr().err


def test_a_root_can_be_named_by_its_nameservice() -> None:
    roots = ["hdfs://ns1/ha", "hdfs://ns2/ha"]
    assert [module._root(roots, each) for each in ("ns2", "hdfs://ns1/ha/")] == ["hdfs://ns2/ha", "hdfs://ns1/ha"]


def test_balance_moves_a_fifth_of_the_jobs_and_says_why(
    roots: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job for job in (f"job-{number}" for number in range(60)) if home_of(roots, job) == roots[0]][:9]
    with ExitStack() as stack:
        leads = [stack.enter_context(ha.lead(job, timeout=30.0)) for job in jobs]
        batches = count()

        def overview(*_: object) -> list[RootView]:
            """Meanwhile each job completes one batch more than the one before it."""
            for number, each in enumerate(leads):
                for _batch in range(number + 1):
                    each.checkpoints.completed("daily", next(batches))
            return [RootView(root, [], rate) for root, rate in zip(roots, (90.0, 0.0), strict=True)]

        monkeypatch.setattr(measuring, "overview", overview)
        assert exit_code(["balance", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "The most loaded root takes 2.00 times the mean of requests; the goal is 1.2." in shown
    assert f"{jobs[8]}: from {roots[0]} to {roots[1]}: it makes some 18.0 requests a second of the 90.0" in shown
    assert f"{jobs[7]}: from {roots[0]} to {roots[1]}: it makes some 16.0 requests a second of the 72.0" in shown
    assert "Then that would be 1.24, with 2 jobs moved (at most 20%)." in shown
    assert "nothing was changed" in shown
    plans = Plan(
        [Move(jobs[8], roots[0], roots[1], 18.0, 90.0, 0.0), Move("nobody", roots[0], roots[1], 1.0, 72.0, 18.0)],
        2.0,
        1.2,
        "",
        {},
    )
    monkeypatch.setattr(module, "measured", lambda *_: ({}, []))
    monkeypatch.setattr(module, "plan", lambda *_: plans)
    assert exit_code(["balance"]) == 1, "one could not be moved"
    shown, failed = capsys.readouterr()
    assert f"{jobs[8]}: is at {roots[1]}" in shown
    assert "nobody: There is no job 'nobody'" in failed
    assert "1 of 2 jobs have not moved: nobody." in failed


def test_without_a_load_nothing_is_balanced(roots: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["balance", "--dry-run", "--interval", "0.01"]) == 1
    assert f"The load of {min(roots)} is not known" in capsys.readouterr().err
