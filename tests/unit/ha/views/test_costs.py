"""The NameNode's costs of a look at a job: counted, because pages look again and again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.api.events import look
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.views.jobs import summaries, summary
from ha.views.leases import Leases
from leader.job.admin import JobAdmin
from leader.layout.names import CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY
from store.local import LocalFiles
from tests.unit.ha.led import Led


@pytest.fixture
def looks(tmp_path: Path) -> Iterator[tuple[JobAdmin, Leases]]:
    for job in ("orders", "sums"):
        Led(tmp_path).claim(job, "a:1")
        (leader,) = (tmp_path / job).iterdir()
        for folder in (CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY):
            (leader / folder).mkdir(exist_ok=True)
    stores = Stores(Settings.of(files=tmp_path.as_uri()))
    yield JobAdmin(stores.files, None, 5), Leases(stores)
    stores.close()


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made, real = list[str](), LocalFiles.list

    def counted(files: LocalFiles, path: str) -> object:
        made.append(path)
        return real(files, path)

    monkeypatch.setattr(LocalFiles, "list", counted)
    return made


def test_a_job_at_a_glance_costs_four_lists(looks: tuple[JobAdmin, Leases], listed: list[str]) -> None:
    assert summary(looks[0], "orders", looks[1]).epoch == 1
    assert len(listed) == 4


def test_all_jobs_cost_four_lists_each_and_one_more(looks: tuple[JobAdmin, Leases], listed: list[str]) -> None:
    assert [each.job for each in summaries(*looks)] == ["orders", "sums"]
    assert len(listed) == 9


def test_the_marks_of_a_job_cost_five_lists_more(looks: tuple[JobAdmin, Leases], listed: list[str]) -> None:
    found, marks = look(looks[0], "orders", looks[1])
    assert (found.job, sorted(marks)) == ("orders", ["checkpoints", "exceptions", "history", "queries"])
    assert len(listed) == 9
