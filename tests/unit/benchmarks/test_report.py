"""Tests of the report: its files, what stays in it, and its Markdown."""

import json
import math
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.result import Result
from tests.unit.benchmarks.results import entry


def written(folder: Path, *entries: report.Entry) -> str:
    for each in entries:
        report.write(folder, each)
    return (folder / report.MARKDOWN).read_text()


def test_a_report_has_all_that_was_measured(tmp_path: Path) -> None:
    written(tmp_path, entry("lookup"))
    found = json.loads((tmp_path / "lookup.json").read_text())
    assert found["machine"]["packages"] == {"kazoo": "2.11.0"}
    assert found["result"]["rows"] == [["here", 1.5], ["a|b", 12345]]
    assert found["result"]["targets"][0]["measured"] == 1.5
    assert found["result"]["raw"] == {"durations": [1.0, "never"]}, "infinity is nothing that JSON can say"


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (1.5, "Met: not too slow: 1.5 (at most 2 ms)"),
        (2.5, "**NOT met**: not too slow: 2.5 (at most 2 ms)"),
        (math.nan, "NOT met**: not too slow: not measured (at most 2 ms)"),
        (math.inf, "not too slow: never (at most 2 ms)"),
        (math.inf, "| here | never |"),
    ],
)
def test_the_markdown_says_what_was_met_and_what_not(tmp_path: Path, measured: float, said: str) -> None:
    assert said in written(tmp_path, entry("lookup", measured))
    json.loads((tmp_path / "lookup.json").read_text(), parse_constant=pytest.fail)


def test_a_run_keeps_the_others_and_replaces_the_same(tmp_path: Path) -> None:
    written(tmp_path, entry("publish", 1.0), entry("lookup", 1.0))
    (tmp_path / "lookup-old.svg").touch()
    text = written(tmp_path, entry("lookup", 2.5))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Benchmarks",
        "## The publish",
        "## The lookup",
    ]
    assert "1 of 2 targets were met." in text
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["lookup-bars.svg", "publish-bars.svg"]


def test_the_markdown_has_a_table_a_note_and_a_picture_that_is_there(tmp_path: Path) -> None:
    lines = written(tmp_path, entry("lookup")).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table == ["| who | p50 (ms) |", "|---|---:|", "| here | 1.5 |", "| a\\|b | 12,345 |"]
    assert "- A note." in lines
    assert "![Bars](lookup-bars.svg)" in lines
    assert (tmp_path / "lookup-bars.svg").read_text() == "<svg/>\n"


def test_each_benchmark_says_on_which_machine_it_was_measured(tmp_path: Path) -> None:
    assert written(tmp_path, entry("lookup"), entry("publish")).count("a processor") == 2


def test_documents_keep_the_benchmarks_that_were_not_measured_again(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    written(tmp_path / "one", entry("publish", 2.5))
    report.publish(tmp_path / "one", documents)
    (documents / "publish-old.svg").touch()
    written(tmp_path / "two", entry("lookup", 2.5))
    report.publish(tmp_path / "two", documents)
    written(tmp_path / "three", entry("publish", 1.5))
    report.publish(tmp_path / "three", documents)
    shown = ["benchmarks.md", "lookup-bars.svg", "publish-bars.svg"]
    assert sorted(path.name for path in documents.iterdir()) == shown, "a picture that nothing shows is gone"
    text = (documents / "benchmarks.md").read_text()
    assert text == written(tmp_path / "four", entry("publish", 1.5), entry("lookup", 2.5))
    assert "1 of 2 targets were met." in text


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="has 1 cells, the table has 2 columns"):
        Result(("one", "two"), (("one",),), (), ())
