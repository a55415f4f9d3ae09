"""Tests of the thousand-jobs benchmark: its parsing of kernel and server statistics, and its summary."""

from collections import Counter

import pytest

from benchmarks import thousand_jobs
from benchmarks.thousand_jobs import Rest
from benchmarks.thousand_jobs.counters import calls, packets
from benchmarks.thousand_jobs.daemon import TICKS, granted, resident, used


def test_memory_is_what_is_resident() -> None:
    assert resident("Name:\tpython\nVmHWM:\t 9999 kB\nVmRSS:\t  125000 kB\n") == 128.0


def test_processor_time_is_that_of_the_process_whatever_it_is_called() -> None:
    stat = "17 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 4711"
    assert used(stat) == pytest.approx(300 / TICKS)


def test_calls_are_those_of_clients() -> None:
    beans = [{"Rename2NumOps": 5, "GetListingNumOps": 7, "SendHeartbeatNumOps": 99, "Rename2AvgTime": 0.1}, {}]
    assert calls(beans) == Counter({"rename2": 5, "getListing": 7})


def test_packets_are_found_among_all_else() -> None:
    assert packets("zk_version\t3.9.5\nzk_packets_received\t4711\nzk_packets_sent\t1\n") == 4711
    with pytest.raises(ValueError, match="zk_packets_received"):
        packets("This ZooKeeper instance is not currently serving requests\n")


def test_the_report_has_the_most_memory_and_medians() -> None:
    rests = [Rest(100, 20, 10, {"rename2": 40, "getListing": 10}, 5, 0), Rest(300, 21, 20, {"rename2": 51}, 6, 0)]
    rests.append(Rest(200, 22, 90, {"rename2": 52}, 7, 0))
    takeovers = [[10.0, 11.0, 12.0], [9.0, 11.0, 20.0], [9.5, 10.0, 13.0]]
    result = thousand_jobs.report({"leader": rests}, takeovers, 3)
    assert result.rows == (("leader", 300, 22, 20, 51, 6),)
    assert [each.measured for each in result.targets] == [300, 20]
    assert all(each.met for each in result.targets)
    assert (
        "the first of 3 jobs after 9.5 s, half of them after 11.0 s, all after 13.0 s (medians of 3)" in result.notes[0]
    )


def test_a_rest_in_which_leaders_changed_is_none() -> None:
    result = thousand_jobs.report({"leader": [Rest(1, 1, 1, {}, 0, 2), Rest(1, 1, 1, {}, 0, 1)]}, [], 3)
    assert result.notes[0] == "NOT AT REST: leader: 3 jobs changed their leader."
    assert "NOT MEASURED" in result.notes[1]


def test_a_job_that_is_granted_twice_counts_once() -> None:
    line = "2026-01-01 00:00:00,000 INFO    {}: granted at epoch {}, session 0 (released).\n"
    said = "".join(line.format(job, epoch) for job, epoch in (("job-1", 1), ("job-2", 1), ("job-1", 2)))
    assert granted(said.encode()) == 2
