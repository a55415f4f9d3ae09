"""Hosts that executors keep off, on each of the stores: kept through claims, replaced, and read as written."""

import pytest

from leader.errors import Fenced, InvalidName
from leader.job.excluded import MOST_HOSTS, ExcludedHosts, hosts_of, text_of
from leader.job.failed_attempts import FailedAttempts
from tests.unit.leader.owned import HOME, Owned


def test_hosts_are_kept_replaced_and_taken_along_by_a_claim(owned: Owned) -> None:
    hosts = ExcludedHosts(owned.own)
    assert hosts.load() == []
    hosts.keep(["h2.example", "h1"])
    assert hosts.load() == ["h1", "h2.example"]
    hosts.keep(["h1", "h3"])
    assert hosts.load() == ["h1", "h3"]
    heir = ExcludedHosts(owned.claim())
    assert heir.load() == ["h1", "h3"]
    with pytest.raises(Fenced):
        hosts.keep([])
    heir.keep([])
    assert heir.load() == []


def test_what_else_lies_there_is_no_host(owned: Owned) -> None:
    FailedAttempts(owned.own).add("exit-3", "h9", 1.0)
    for name in ("excluded=", "excluded=-a", "excluded=a_b", "excluded"):
        owned.direct.make_directory(f"{HOME}/graph/{name}")
    ExcludedHosts(owned.own).keep(["h1"])
    assert ExcludedHosts(owned.own).load() == ["h1"]
    ExcludedHosts(owned.own).keep([])
    assert FailedAttempts(owned.own).load().failures == 1


@pytest.mark.parametrize(
    ("text", "hosts"), [("", []), (" ,", []), ("b, a,b", ["a", "b"]), ("host-1.example.org", ["host-1.example.org"])]
)
def test_hosts_are_read_from_text(text: str, hosts: list[str]) -> None:
    assert hosts_of(text) == hosts
    assert hosts_of(text_of(hosts)) == hosts


@pytest.mark.parametrize("text", ["a b", "-a", "a-", "a/b", "ä", "a_b", "x" * 201, "a,*"])
def test_what_can_be_no_host_is_refused(text: str) -> None:
    with pytest.raises(InvalidName, match="is no name of a host"):
        hosts_of(text)


def test_as_many_hosts_as_names_are_worth_a_list() -> None:
    most = ",".join(f"h{each}" for each in range(MOST_HOSTS))
    assert len(hosts_of(most)) == MOST_HOSTS
    assert hosts_of("x" * 200) == ["x" * 200]
    with pytest.raises(InvalidName, match="101 hosts are too many"):
        hosts_of(f"{most},more")
