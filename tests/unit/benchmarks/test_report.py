"""Tests of the report: writing, reading, merging, and its Markdown."""

import json
import math
from pathlib import Path

import pytest

from benchmarks import report
from tests.unit.benchmarks.results import entry, result


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("lookup")])
    (found,) = report.load(tmp_path)
    assert found.machine == entry("lookup").machine
    assert found.result.rows == entry("lookup").result.rows
    assert found.result.targets == entry("lookup").result.targets
    assert found.result.pictures == entry("lookup").result.pictures
    assert found.result.raw == {"durations": [1.0, None]}, "infinity is nothing that JSON can say"


def test_what_was_not_measured_stays_not_measured(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("lookup", math.nan)])
    json.loads((tmp_path / report.JSON).read_text(), parse_constant=pytest.fail)
    (found,) = report.load(tmp_path)
    assert math.isnan(found.result.targets[0].measured)
    assert not found.result.targets[0].met
    assert "NOT met**: not too slow (at most 2 ms; not measured)" in (tmp_path / report.MARKDOWN).read_text()


def test_what_never_came_is_never_also_when_it_was_merged(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("lookup", math.inf)])
    before = (tmp_path / report.MARKDOWN).read_text()
    report.write(tmp_path, [], merge=True)
    assert (tmp_path / report.MARKDOWN).read_text() == before
    assert "| here | never |" in before
    assert "measured never" in before


def test_merging_keeps_the_others_and_replaces_the_same(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("publish", 1.0), entry("lookup", 1.0)])
    report.write(tmp_path, [entry("lookup", 9.0)], merge=True)
    assert [(each.result.name, each.result.targets[0].measured) for each in report.load(tmp_path)] == [
        ("lookup", 9.0),
        ("publish", 1.0),
    ], "in the catalogue's order"
    assert (tmp_path / "publish-bars.svg").exists()


def test_without_merging_nothing_old_is_left(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("publish")])
    report.write(tmp_path, [entry("lookup")])
    assert [each.result.name for each in report.load(tmp_path)] == ["lookup"]
    assert [path.name for path in tmp_path.glob("*.svg")] == ["lookup-bars.svg"]


def test_the_other_modules_results_may_have_names_that_the_catalogue_does_not_know(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("unknown"), entry("publish")])
    assert [each.result.name for each in report.load(tmp_path)] == ["publish", "unknown"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"entries": [1]}', '{"entries": [{"result": {"targets": []}}]}'])
def test_what_is_no_report_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / report.JSON).write_text(text)
    with pytest.raises(ValueError, match="is not a report of benchmarks"):
        report.load(tmp_path)


def test_the_markdown_says_what_was_met_and_what_not() -> None:
    text = report.markdown([entry("lookup", 1.5), entry("publish", 2.5)])
    assert "1 of 2 targets were met." in text
    assert "Target met: not too slow (at most 2 ms; measured 1.5 ms)" in text
    assert "Target **NOT met**: not too slow (at most 2 ms; measured 2.5 ms)" in text


def test_the_markdown_has_a_table_a_note_and_a_picture_that_is_there(tmp_path: Path) -> None:
    report.write(tmp_path, [entry("lookup")])
    lines = (tmp_path / report.MARKDOWN).read_text().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table == ["| who | p50 (ms) |", "| --- | ---: |", "| here | 1.5 |", "| a\\|b | 12,345 |"]
    assert "- A note." in lines
    assert "![Bars](lookup-bars.svg)" in lines
    assert (tmp_path / "lookup-bars.svg").read_text() == "<svg/>\n"


def test_each_benchmark_says_on_which_machine_it_was_measured() -> None:
    assert report.markdown([entry("lookup"), entry("publish")]).count("a processor") == 2


def test_documents_keep_the_benchmarks_that_were_not_measured_again(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    report.write(tmp_path, [entry("publish", 2.5)])
    report.publish(tmp_path, documents)
    (documents / "publish-old.svg").touch()
    report.write(tmp_path, [entry("lookup", 2.5)])
    report.publish(tmp_path, documents)
    report.write(tmp_path, [entry("publish", 1.5)])
    report.publish(tmp_path, documents)
    shown = ["benchmarks.md", "lookup-bars.svg", "publish-bars.svg"]
    assert sorted(path.name for path in documents.iterdir()) == shown, "a picture that nothing shows is gone"
    text = (documents / "benchmarks.md").read_text()
    assert text == report.markdown([entry("publish", 1.5), entry("lookup", 2.5)])
    assert "1 of 2 targets were met." in text


def test_a_row_has_a_cell_for_each_column() -> None:
    good = result("lookup")
    with pytest.raises(ValueError, match="has 1 cells, the table has 2 columns"):
        type(good)(good.name, good.title, good.columns, (("one",),), (), (), (), {})
