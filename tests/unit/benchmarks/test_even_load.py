"""Even load: what the rows say, the bound of a batch, and the count of reads in an audit log."""

from dataclasses import asdict

import pytest

from benchmarks.spark import even_load, executors
from benchmarks.spark.even_load import CASES, PLAN, QUICK, SETTINGS, USUAL, Measured, least
from benchmarks.spark.executors import reads

LINE = "00:22:23.584 INFO audit: allowed=true\tugi=root (auth:SIMPLE)\tip=/127.0.0.1\tcmd={}\tsrc={}\tdst=null"


def test_only_the_reads_of_that_very_file_are_counted() -> None:
    audit = "\n".join(
        LINE.format(command, path)
        for command, path in [("open", "/a.zip"), ("open", "/a.zip"), ("open", "/a.zip.crc"), ("create", "/a.zip")]
    )
    assert reads(audit, "/a.zip") == 2
    assert reads(audit, "/b.zip") == 0
    assert reads(audit, "/a-zip") == 0


def test_no_batch_is_shorter_than_if_all_cores_ended_at_once() -> None:
    # Two cores do 100 rows in 3 s, two do 25 of them.
    assert least() == pytest.approx(3.0 * 240 / 250)


def test_each_case_runs_under_settings_that_exist() -> None:
    assert set(PLAN) == set(SETTINGS)
    assert all(set(cases) <= set(PLAN[name]) for name, cases in QUICK.items())
    assert {case for cases in PLAN.values() for case in cases} == set(CASES)


def test_a_row_of_the_table_is_the_median_of_all_rounds() -> None:
    one = Measured(USUAL, even_load.EQUAL, [1000.0, 2000.0], [0.5, 0.5])
    two = Measured(USUAL, even_load.EQUAL, [3000.0], [0.25])
    rest = [Measured(name, case, [1.0], [0.5]) for name, cases in PLAN.items() for case in cases]
    others = [each for each in rest if (each.settings, each.case) != (USUAL, even_load.EQUAL)]
    result = even_load._result([one, *others, two], 2, PLAN)
    assert result.rows[0] == (even_load.EQUAL, USUAL, 2.0, 3.0, "50%")
    assert result.raw["turns"][0] == asdict(one)


def test_memory_is_shown_at_the_first_and_the_last_start() -> None:
    result = executors._result({"bounded": [100.4, 150.0, 130.2]}, [(2, "true", 3, 1)], 3)
    assert result.rows[0][1:] == (100, 130, 30)
    assert result.rows[1][1:] == ("-", 3, "-")
