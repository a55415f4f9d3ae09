"""Decommissioning a host's workers: what is asked, what is waited for, and how refusals are told."""

import json

import pytest

from ha.drain.executors import Master
from leader.errors import LeaderError
from store.errors import ConnectionLost, PermissionDenied
from tests.unit.ha.clocks import At


def worker(state: str, cores: int = 0, host: str = "a") -> dict[str, object]:
    return {"id": f"worker-{host}", "host": host, "state": state, "coresused": cores, "port": 1}


class Interface(At):
    """A master's web interface, of which each answer is the next one, and a clock."""

    def __init__(self, *shown: list[dict[str, object]], refuses: int = 200) -> None:
        super().__init__()
        self.shown, self.refuses = list(shown), refuses
        self.asked: list[str] = []

    def __call__(self, method: str, url: str) -> tuple[int, bytes]:
        self.asked.append(f"{method} {url}")
        if method == "POST":
            return self.refuses, b""
        return 200, json.dumps({"workers": self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]}).encode()


def test_it_waits_until_the_executors_have_ended() -> None:
    others = worker("ALIVE", 2, host="b")
    shown = [worker("ALIVE", 2)], [worker("DECOMMISSIONED", 2), others], [worker("DECOMMISSIONED"), others]
    interface = Interface(*shown)
    assert Master("http://m:8080/", interface).decommission("a", 60.0, interface) == []
    assert interface.asked.count("POST http://m:8080/workers/kill/?host=a") == 1
    assert interface.at == 1.0


def test_what_still_runs_at_the_end_is_told() -> None:
    interface = Interface([worker("DECOMMISSIONED", 2)])
    (left,) = Master("http://m:8080", interface).decommission("a", 5.0, interface)
    assert (left.id, left.cores, interface.at) == ("worker-a", 2, 5.0)
    assert not any(each.startswith("POST") for each in interface.asked), "it was decommissioned before"


@pytest.mark.parametrize("state", ["DEAD", "DECOMMISSIONED", "UNKNOWN"])
def test_a_host_without_a_living_worker_is_done(state: str) -> None:
    interface = Interface([worker(state)])
    assert Master("http://m:8080", interface).decommission("a", 5.0, interface) == []


@pytest.mark.parametrize("status", [401, 403, 405])
def test_a_master_that_refuses_says_what_it_needs(status: int) -> None:
    interface = Interface([worker("ALIVE")], refuses=status)
    with pytest.raises(PermissionDenied, match=r"spark\.decommission\.enabled"):
        Master("http://m:8080", interface).decommission("a", 5.0, interface)


def test_a_name_is_no_part_of_the_question() -> None:
    interface = Interface([worker("ALIVE", host="a&b")])
    Master("http://m:8080", interface).decommission("a&b", 0.0, interface)
    assert "POST http://m:8080/workers/kill/?host=a%26b" in interface.asked


def test_what_is_no_master_is_told() -> None:
    with pytest.raises(ConnectionLost, match="answered 404"):
        Master("http://m:8080", lambda *_: (404, b"")).workers("a")
    with pytest.raises(ConnectionLost, match="no master's web interface"):
        Master("http://m:8080", lambda *_: (200, b"<html>")).workers("a")
    with pytest.raises(ConnectionLost, match="does not answer"):
        Master("http://127.0.0.1:1").workers("a")


def test_a_host_that_the_cluster_does_not_know_is_refused_with_those_that_it_knows() -> None:
    interface = Interface([worker("ALIVE", host="10.0.0.1"), worker("ALIVE", host="node2.example.com")])
    with pytest.raises(LeaderError, match=r"no worker on 'nodd2', but on 10\.0\.0\.1, node2\.example\.com: name one"):
        Master("http://m:8080", interface).check_known("nodd2")


def test_a_host_is_asked_for_as_the_cluster_spells_it() -> None:
    before, after = worker("ALIVE", host="node2.example.com"), worker("DECOMMISSIONED", host="node2.example.com")
    interface = Interface([before], [before], [after])
    master = Master("http://m:8080", interface)
    master.check_known("NODE2")
    assert master.decommission("NODE2", 5.0, interface) == []
    assert interface.asked.count("POST http://m:8080/workers/kill/?host=node2.example.com") == 1
