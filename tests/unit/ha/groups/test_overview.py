"""What people are shown of a group: which jobs lie where, which root is silent, and how loaded each one is."""

import json
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner

from ha.cli import move as cli
from ha.cli.commands import app, exit_code
from ha.groups import overview as module
from ha.groups.overview import RootView, overview, places
from ha.placement.load import Load
from store.errors import NotSent
from tests.unit.ha.clocks import At
from tests.unit.ha.placement.roots import Roots
from tests.unit.ha.placement.test_group_files import create, move


def jobs_of(roots: Roots) -> dict[str, list[str] | None]:
    return {root: jobs for root, (jobs, _) in places(roots.group()).items()}


def test_each_job_is_shown_once_where_it_lies(roots: Roots) -> None:
    jobs, away = [f"job-{number}" for number in range(9)], roots.others("job-0")[0]
    for job in jobs:
        create(roots.group(), job)
    move(roots, roots.home("job-0"), away, "job-0")
    found = jobs_of(roots)
    assert sorted(job for each in found.values() for job in each or []) == jobs
    assert "job-0" in (found[away] or [])


def test_a_root_that_is_away_is_not_known_and_its_jobs_are_nobody_elses(roots: Roots) -> None:
    create(roots.group())
    gone = roots.home("orders")
    roots.drivers[gone].down = True
    assert jobs_of(roots) == {root: None if root == gone else [] for root in roots.uris}
    assert "The NameNode is away" in str(places(roots.group())[gone][1])


def test_of_a_root_that_is_away_a_job_that_has_moved_there_is_not_shown_where_it_was(roots: Roots) -> None:
    home, away = roots.home("orders"), roots.others("orders")[0]
    create(roots.group())
    move(roots, home, away)
    roots.drivers[away].down = True
    assert jobs_of(roots) == {root: None if root == away else [] for root in roots.uris}


def test_requests_are_counted_over_the_time_that_has_passed(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {root: 100 * number for number, root in enumerate(roots.uris)}

    def load(root: str, ca: str) -> Load:
        assert ca == "ca"
        if root == roots.uris[2]:
            raise NotSent("silent")
        counts[root] += 30
        return Load("http://nn", counts[root], 1.5, 0.5, 2)

    monkeypatch.setattr(module, "load_of", load)

    monkeypatch.setattr(module, "ThreadPoolExecutor", _InTurn)
    first, second, third = overview(roots.group(), 12.0, "ca", At())
    assert (first.requests_per_second, first.queue_ms, first.processing_ms, first.queue_length) == (2.5, 1.5, 0.5, 2)
    assert second.requests_per_second == 2.5
    assert (third.requests_per_second, third.problem, third.jobs) == (None, "silent", [])


class _InTurn:
    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = staticmethod(map)


def test_the_command_shows_them_and_says_what_is_not_known(roots: Roots) -> None:
    create(roots.group())
    files = ",".join(roots.uris)
    done = CliRunner().invoke(app, ["job", "roots", "--files", files, "--zookeeper", "", "--interval", "0.01"])
    assert done.exit_code == 0
    assert all(root in done.stdout for root in roots.uris)
    assert "has no NameNode that could be asked" in done.stderr
    done = CliRunner().invoke(
        app, ["job", "roots", "--json", "--interval", "0.01", "--files", files, "--zookeeper", ""]
    )
    found = {each["root"]: each["jobs"] for each in json.loads(done.stdout)}
    assert found[roots.home("orders")] == ["orders"]


def test_the_command_says_how_uneven_the_load_is(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [RootView(root, [], rate) for root, rate in zip(roots.uris, (90.0, 0.0, 45.0), strict=True)]
    monkeypatch.setattr(cli, "overview", lambda *_: views)
    done = CliRunner().invoke(app, ["job", "roots", "--files", ",".join(roots.uris), "--zookeeper", ""])
    assert "The most loaded root takes 2.00 times the mean." in done.stdout


def test_one_root_is_no_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["job", "roots", "--files", tmp_path.as_uri(), "--zookeeper", ""]) == 2
    assert "which is one root: set `files` to a group" in capsys.readouterr().err
