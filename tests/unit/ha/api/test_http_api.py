"""Probes, without a token, and the end of a program's log, for holders of one."""

import importlib.metadata
import socket
from pathlib import Path
from unittest import mock

import pytest

from ha.api.http_api import LOG_BYTES
from ha.program import output_log
from tests.unit.ha.api.serving import OPERATE, Served, status

PROBES = ("/livez", "/readyz", "/leader", "/standby")
LOGS = "/api/v1/jobs/orders/logs"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_leader_is_the_leader_and_not_the_standby(served: Served, method: str) -> None:
    served.contends["orders"] = status("orders", leads=True, epoch=7)
    assert [served.ask(method, path, token="")[0] for path in PROBES] == [200, 200, 200, 503]
    served.contends["orders"] = status("orders", leads=False)
    assert [served.ask(method, path, token="")[0] for path in PROBES] == [200, 200, 503, 200]


def test_the_answer_says_the_role(served: Served) -> None:
    served.contends["orders"] = status("orders", leads=True, epoch=7)
    assert served.get("/leader") == (200, {"job": "orders", "role": "leader", "epoch": 7})
    code, said = served.get("/standby")
    assert (code, said["status"], said["title"]) == (503, 503, "Service Unavailable")
    assert said["detail"] == "orders: this process is the leader, not the standby."


def test_a_standby_that_cannot_take_over_is_neither(served: Served) -> None:
    served.contends["orders"] = status("orders", leads=False, not_eligible="It may not write.")
    for path in ("/readyz", "/standby", "/leader"):
        code, said = served.get(path)
        assert code == 503
        assert "It may not write." in said["detail"]
    assert served.get("/livez")[0] == 200


def test_a_leader_that_could_not_take_over_again_leads(served: Served) -> None:
    """Its installation was replaced, or HDFS refuses it renames: whoever goes by /leader still finds it."""
    served.contends["orders"] = status("orders", leads=True, epoch=7, not_eligible="It may not write.")
    assert served.get("/leader")[0] == 200
    assert [served.get(path)[0] for path in ("/standby", "/readyz")] == [503, 503]


def test_a_process_of_several_jobs_is_asked_about_one(served: Served) -> None:
    served.contends["orders"] = status("orders", leads=True, epoch=7)
    served.contends["sums"] = status("sums", leads=False)
    code, said = served.get("/leader")
    assert (code, said["detail"]) == (404, "Name the job, as in ?job=orders. The jobs of this process: orders, sums.")
    assert [served.get(f"/leader?job={job}")[0] for job in ("orders", "sums", "other")] == [200, 503, 404]


def test_a_contender_that_does_not_answer_is_not_alive(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen(dict[str, object]):
        def __len__(self) -> int:
            raise TimeoutError

    monkeypatch.setattr(served, "contends", Frozen())
    assert served.get("/livez")[0] == 503


@pytest.mark.usefixtures("quick")
def test_a_process_that_runs_from_its_sources_serves_as_well(tmp_path: Path) -> None:
    """The images of the drills have no metadata of the package."""
    (tmp_path / "operate").write_text(OPERATE)
    missing = importlib.metadata.PackageNotFoundError("hybrid-ha")
    with mock.patch("ha.api.http_api.version", side_effect=missing):
        served = Served(str(tmp_path / "operate"))
    try:
        assert served.get("/api/v1/openapi.json")[1]["info"]["version"] == "unknown"
    finally:
        served.close()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_end_of_the_newest_run_is_shown(served: Served, state: Path) -> None:
    path = output_log.new("orders", 1, state / "link")
    path.write_text("x" * LOG_BYTES + "the end\n")
    assert served.get(LOGS)[1] == {
        "host": socket.gethostname(),
        "path": str(path),
        "text": "x" * (LOG_BYTES - 8) + "the end\n",
    }


@pytest.mark.usefixtures("state")
def test_without_a_run_it_says_so(served: Served) -> None:
    code, said = served.get(LOGS)
    assert (code, "No run of job 'orders' is kept on" in said["detail"]) == (404, True)


def test_it_is_shown_to_holders_of_a_token_alone(served: Served, state: Path) -> None:
    output_log.new("orders", 1, state / "link")
    assert served.ask("GET", LOGS, token="")[0] == 401
    open_to_all = Served()
    try:
        code, said = open_to_all.get(LOGS)
        assert (code, "set http_read_tokens" in said["detail"]) == (403, True)
    finally:
        open_to_all.close()
