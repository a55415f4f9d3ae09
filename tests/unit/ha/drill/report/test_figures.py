"""Figures, the summary, the comparison and their Markdown."""

from math import inf, nan

import msgspec
import pytest

from ha.drill.outcome import Outcome
from ha.drill.report.figures import Figure, count, figures, ordered, printable, seconds
from ha.drill.report.pages import table
from ha.drill.report.summary import arranged, compare, rows, tallies
from tests.unit.ha.drill.report.synthetic import Story, outcome, report, skipped


def made(drill: str = "kill", provider: str = "hybrid-ha", **measures: float) -> Outcome:
    return Outcome(
        drill=drill,
        title="Kill it.",
        group="kills",
        environment="sandbox",
        provider=provider,
        status="passed",
        measures=measures,
    )


# --- figures


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.00012, "0.1 ms"),
        (0.0123, "12 ms"),
        (0.0994, "99 ms"),
        (0.0996, "0.10 s"),
        (1.404, "1.40 s"),
        (9.996, "10.0 s"),
        (75, "75.0 s"),
        (1234.5, "1,234 s"),
        (-1.5, "-1.50 s"),
        (inf, "never"),
        (nan, "unknown"),
    ],
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


def test_counts() -> None:
    assert [count(value) for value in (0, 12_000, 0.5, inf)] == ["0", "12,000", "0.50", "never"]


def test_known_measures_come_first_and_unknown_ones_too() -> None:
    assert ordered(["zebras", "batches", "apes", "leader_changes"]) == ["leader_changes", "batches", "apes", "zebras"]


def test_a_bound_is_shown_with_what_it_bounds() -> None:
    found = figures({"takeover_seconds": 8, "takeover_bound_seconds": 7, "naps_seconds": 1, "naps_bound_seconds": 2})
    assert found == [
        Figure("takeover_seconds", "recovery: fault to the next leader", "8.00 s", "7.00 s", exceeds=True),
        Figure("naps_seconds", "naps", "1.00 s", "2.00 s", exceeds=False),
    ]
    assert figures({"takeover_bound_seconds": 7}) == [Figure("takeover_bound_seconds", "recovery, at most", "7.00 s")]


def test_what_cannot_be_shown_is_replaced() -> None:
    assert printable("a\0b\u202ec\ud800\nd é 語") == "a\ufffdb\ufffdc\ufffd d é 語"


# --- the summary


def test_each_provider_has_a_verdict() -> None:
    found = report(
        made("a"), skipped("b", "no engine"), made("c"), outcome("a", Story(twice=1), what="x", provider="kazoo")
    )
    assert [(each.provider, each.sentence) for each in tallies(found)] == [
        ("hybrid-ha", "1 NOT RUN, 2 passed"),
        ("kazoo", "1 FAILED"),
    ]
    assert tallies(report(made("a"), made("b")))[0].sentence == "all 2 passed"
    assert tallies(report()) == []


def test_outcomes_of_one_drill_stand_together() -> None:
    ran = [made("a", "kazoo"), made("b"), made("a", "curator"), made("a"), made("a", "raft")]
    assert [(each.drill, each.provider) for each in arranged(ran)] == [
        ("a", "hybrid-ha"),
        ("a", "kazoo"),
        ("a", "curator"),
        ("a", "raft"),
        ("b", "hybrid-ha"),
    ]


def test_a_row_says_what_failed() -> None:
    (row,) = rows(report(outcome("a", Story(twice=2.0), what="x")))
    assert row.verdict == "FAILED"
    assert row.why.startswith("one leader at a time: Two believed to lead for 2.0 s.; every word is counted once: ")
    assert row.words_wrong


def test_a_row_of_a_drill_that_was_not_run_says_why_once() -> None:
    (row,) = rows(report(skipped("a", "NOT RUN: the sandbox cannot cut networks.")))
    assert (row.verdict, row.why, row.recovery) == ("NOT RUN", "the sandbox cannot cut networks.", "\N{EN DASH}")


def test_recovery_is_set_against_its_bound() -> None:
    (row,) = rows(report(made(takeover_seconds=1.75, takeover_bound_seconds=7)))
    assert (row.recovery, row.bound, row.share, row.late) == ("1.75 s", "7.00 s", 0.25, False)
    (row,) = rows(report(made(takeover_seconds=inf, takeover_bound_seconds=7)))
    assert (row.recovery, row.share, row.late) == ("never", 1, True)


# --- the comparison


def marks(*outcomes: Outcome) -> dict[str, list[tuple[str, str]]]:
    (drill,) = compare(report(*outcomes)).drills
    return {line.label: [(cell.text, cell.mark) for cell in line.cells] for line in drill.lines}


def test_best_and_worst_of_each_measure_with_this_project_first() -> None:
    found = marks(
        made(provider="kazoo", overlap_seconds=6, words_wrong=3, lookups=9),
        made(provider="curator", overlap_seconds=0, words_wrong=7, lookups=5),
        made(overlap_seconds=0, words_wrong=0, lookups=7),
    )
    assert found["two drivers at once"] == [("0 s", "best"), ("6.00 s", "worst"), ("0 s", "best")]
    assert found["words counted wrong"] == [("0", "best"), ("3", ""), ("7", "worst")]
    assert found["lookups"] == [("7", ""), ("9", ""), ("5", "")], "more of them is neither"
    assert list(found) == ["verdict", "words counted wrong", "two drivers at once", "lookups"]


def test_equal_figures_and_missing_ones_are_not_marked() -> None:
    found = marks(made(overlap_seconds=0, takeover_seconds=1), made(provider="kazoo", overlap_seconds=0))
    assert found["two drivers at once"] == [("0 s", ""), ("0 s", "")]
    assert found["recovery: fault to the next leader"] == [("1.00 s", ""), ("\N{EN DASH}", "")]


def test_never_is_the_worst() -> None:
    found = marks(made(first_batch_seconds=20), made(provider="kazoo", first_batch_seconds=inf))
    assert found["fault to the next leader's first batch"] == [("20.0 s", "best"), ("never", "worst")]


def test_no_change_of_leader_is_good_only_where_none_is_needed() -> None:
    assert marks(made(leader_changes=0), made(provider="kazoo", leader_changes=1))["leader changes"][0] == ("0", "best")
    needed = marks(made(leader_changes=1, takeover_bound_seconds=7), made(provider="kazoo", leader_changes=0))
    assert needed["leader changes"] == [("1", ""), ("0", "")]


def test_only_drills_of_several_providers_in_one_environment_are_compared() -> None:
    elsewhere = msgspec.structs.replace(made("a", "kazoo"), environment="containers")
    not_run = msgspec.structs.replace(made("b", "kazoo"), status="skipped", reason="no engine")
    found = compare(report(made("a"), elsewhere, made("b"), not_run, made("c"), made("c", "curator")))
    assert [drill.drill for drill in found.drills] == ["c"]
    assert found.providers == ["hybrid-ha", "curator"]


def test_a_provider_that_did_not_run_a_drill_has_no_figures() -> None:
    found = compare(report(made("a", batches=3), made("a", "kazoo", batches=4), made("b"), made("b", "curator")))
    assert [len(line.cells) for drill in found.drills for line in drill.lines] == [3] * 3
    assert [cell.text for cell in found.drills[0].lines[0].cells] == ["passed", "passed", "\N{EN DASH}"]


# --- Markdown


def test_the_tables_are_markdown() -> None:
    lines = table(report(outcome("a", Story(), what="kill"), skipped("b", "no engine"))).splitlines()
    assert lines[0].startswith("Drills of 2025-06-03T14:05:11+02:00, version 0.1.0. hybrid-ha: 1 NOT RUN, 1 passed.")
    rendered = [line for line in lines if line.startswith("|")]
    assert len(rendered) == 4
    assert len({line.count("|") for line in rendered}) == 1
    assert "HA provider" not in rendered[0], "there is only one"
    assert "| passed | 1 | 1.40 s (at most 7.00 s) |" in rendered[2]
    assert "**NOT RUN**: no engine" in rendered[3]


def test_the_comparison_is_markdown() -> None:
    text = table(report(made(words_wrong=0), made(provider="kazoo", words_wrong=340)))
    assert "| Drill | Measure | hybrid-ha | kazoo |" in text
    assert "|  | words counted wrong | **0** | *340* |" in text


def test_markdown_says_hostile_texts_as_they_are() -> None:
    text = table(report(skipped("a|b", "<b>*no*\n| engine & `rest`\0</b>")))
    (row,) = [line for line in text.splitlines() if "NOT RUN**" in line]
    assert row.startswith("| a\\|b |")
    assert "\\<b\\>\\*no\\* \\| engine &amp; \\`rest\\`\ufffd\\</b\\>" in row


def test_an_empty_report_is_markdown() -> None:
    assert table(report()) == "Drills of 2025-06-03T14:05:11+02:00, version 0.1.0. None were run.\n"
