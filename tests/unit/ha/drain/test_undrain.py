"""Whom a person means by a host: a name that nobody has is refused, before anybody believes that it is drained."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.drain.undrain import known_as
from leader.errors import LeaderError
from tests.unit.ha.drain.test_drain import Cluster

FULL, OWN = "node1.example.com", "node2.example.com-4711-0a1b2c"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.add("orders", FULL, [FULL, OWN])
    yield made
    made.opened.close()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (FULL, FULL),
        ("node1", FULL),
        ("NODE1.example.com", FULL),
        ("Node1", FULL),
        (OWN, OWN),
        ("node2.example.com", "node2.example.com"),
        ("node2", "node2.example.com"),
    ],
)
def test_a_host_is_known_by_its_name_in_full_or_not(cluster: Cluster, said: str, meant: str) -> None:
    assert known_as(cluster, said, "") == meant


@pytest.mark.parametrize("said", ["nodd1", "node", "node1.example.org", "node11", "4711", "node2.example.com-4711"])
def test_a_name_that_nobody_has_is_refused_with_those_that_there_are(cluster: Cluster, said: str) -> None:
    with pytest.raises(LeaderError, match=f"No process contends as '{said}' for any of the 1 jobs.* Add --unseen"):
        known_as(cluster, said, "Add --unseen.")


def test_what_may_be_two_hosts_is_refused_with_both(cluster: Cluster) -> None:
    cluster.add("bills", "node1.example.org", ["node1.example.org"])
    with pytest.raises(LeaderError, match=r"'node1' may be node1\.example\.com or node1\.example\.org: name one"):
        known_as(cluster, "node1", "")
    assert known_as(cluster, FULL, "") == FULL


def test_without_jobs_nobody_is_known(tmp_path: Path) -> None:
    empty = Cluster(tmp_path / "empty")
    with pytest.raises(LeaderError, match="for any of the 0 jobs"):
        known_as(empty, FULL, "")
    empty.opened.close()
