"""A directory that is nearly full is told: of which output, how many entries it has, and what to do."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import ha
from ha.leadership.fenced_rename import FencedRename
from ha.outputs import folder
from ha.program.output_report import REPORTS
from ha.spark import Output
from ha.spark.tools import import_checkpoint
from tests.system.spark.batches import batch, line_of
from tests.unit.ha.cli.test_sweep import written

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize(("there", "told"), [(958, False), (959, True)])
def test_a_directory_that_is_nearly_full_is_told_once_in_a_thousand_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, there: int, *, told: bool
) -> None:
    monkeypatch.setattr(folder, "USUAL", 1201)
    for each in range(there):
        (tmp_path / "out" / f"batch={each}").mkdir(parents=True)
    with ha.lead("orders") as leadership, caplog.at_level(logging.WARNING):
        import_checkpoint(leadership, "sums", written(tmp_path / "elsewhere").as_uri())
        line = line_of(leadership, "sums")
        with Output(leadership, (tmp_path / "out").as_uri(), "totals") as output:
            assert all(output.write(batch("x", line=line), number) for number in (999, 1000, 1001))
    said = [each.getMessage() for each in caplog.records if "entries" in each.getMessage()]
    assert len(said) == told
    (report,) = [each for each in REPORTS.all() if each.name == "totals"]
    assert report.fullness is not None
    assert (report.fullness >= folder.SHARE) == told
    assert not told or "out has 961 entries, and HDFS allows 1,201 in a directory: merge its files" in said[0]


def test_the_fullest_of_several_directories_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "USUAL", 10)
    entries = {"out/a": 9, "out/b": 3}
    renames = SimpleNamespace(outside="out", list=lambda folder: [folder] * entries[folder])
    folder.look(cast(FencedRename, renames), "parted", 9, ["a", "b"])
    assert [each.fullness for each in REPORTS.all() if each.name == "parted"] == [0.9]
