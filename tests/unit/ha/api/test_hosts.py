"""Draining a host over HTTP: it is begun once, its end is told, and bad input begins nothing."""

from pathlib import Path
from typing import Any

import pytest

from leader.job.admin import JobAdmin
from leader.job.barring import drained
from leader.layout import tree
from leader.layout.bar import bars
from store.local import LocalFiles
from tests.lacks import no_thread_free
from tests.unit.ha.api.serving import Served
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

PATH = "/api/v1/hosts/z"


def ended(served: Served) -> dict[str, Any]:
    wait_until(lambda: not served.get(PATH)[1]["running"], what="the drain ends")
    found: dict[str, Any] = served.get(PATH)[1]
    return found


def test_a_host_is_drained_and_may_lead_again(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    assert served.get(PATH)[1]["barred_until"] is None
    code, said = served.ask("POST", f"{PATH}/drain", {"reason": "new disks", "seconds": 600, "unseen": True})
    assert (code, said["host"]) == (202, "z")
    found = ended(served)
    assert (found["by"], found["reason"], found["error"]) == ("http-from-127.0.0.1", "new disks", None)
    assert found["result"] == {"host": "z", "barred": 1, "moved": [], "left": []}
    files = LocalFiles(quick, durable=False)
    assert set(bars(tree.read(files, "orders")[1])) == {"z"}
    assert served.ask("POST", f"{PATH}/undrain", {})[1] == {
        "host": "z",
        "drained": True,
        "jobs": ["orders"],
        "not_yours": [],
    }
    assert drained(files) == {}
    assert served.get(PATH)[1]["barred_until"] is None


def test_a_host_that_no_process_is_known_by_is_not_let_lead(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    code, said = served.ask("POST", f"{PATH}/undrain", {})
    assert (code, "No process contends as 'z'" in said["detail"]) == (404, True)
    code, said = served.ask("POST", f"{PATH}/drain", {})
    assert (code, "If the name is right, ask with `unseen`." in said["detail"]) == (404, True), "and it has not begun"


@pytest.mark.parametrize(
    "body", [{"reason": "two\nlines"}, {"reason": "x" * 41}, {"seconds": 0}, {"seconds": 90 * 86_401}, {"why": "x"}]
)
def test_bad_input_begins_nothing(served: Served, quick: Path, body: dict[str, Any]) -> None:
    code, said = served.ask("POST", f"{PATH}/drain", body)
    assert (code, "cannot be used" in said["detail"]) == (400, True)
    assert drained(LocalFiles(quick, durable=False)) == {}


def test_a_name_that_is_no_contenders_is_refused(served: Served) -> None:
    assert served.get("/api/v1/hosts/-z")[0] == 400


def test_a_store_that_fails_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> list[str]:
        raise TimeoutError("No answer in time.")

    monkeypatch.setattr(JobAdmin, "jobs", fails)
    assert served.ask("POST", f"{PATH}/drain", {})[0] >= 500
    assert served.ask("POST", f"{PATH}/drain", {"unseen": True})[0] == 202
    assert ended(served)["error"] == "No answer in time."


def test_a_drain_that_cannot_begin_is_refused_and_may_be_asked_again(served: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    asked = {"seconds": 600, "unseen": True}
    with no_thread_free("ha-drain"):
        code, said = served.ask("POST", f"{PATH}/drain", asked)
    assert (code, "nothing has begun" in said["detail"]) == (503, True)
    assert not served.get(PATH)[1]["running"]
    assert served.ask("POST", f"{PATH}/drain", asked)[0] == 202
    assert ended(served)["error"] is None
