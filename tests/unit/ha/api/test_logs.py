"""A program's output over HTTP: the end of the newest run on this host, for holders of a token alone."""

import socket
from pathlib import Path

import pytest

from ha.api.logs import MOST
from ha.program import output_log
from tests.unit.ha.api.serving import Served

PATH = "/api/v1/jobs/orders/logs"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_end_of_the_newest_run_is_shown(served: Served, state: Path) -> None:
    path = output_log.new("orders", 1, state / "link")
    path.write_text("x" * MOST + "the end\n")
    assert served.get(PATH)[1] == {
        "host": socket.gethostname(),
        "path": str(path),
        "text": "x" * (MOST - 8) + "the end\n",
    }


def test_without_a_run_it_says_so(served: Served) -> None:
    code, said = served.get(PATH)
    assert (code, "No run of job 'orders' is kept on" in said["detail"]) == (404, True)


def test_it_is_shown_to_holders_of_a_token_alone(served: Served, state: Path) -> None:
    output_log.new("orders", 1, state / "link")
    assert served.ask("GET", PATH, token="")[0] == 401
    open_to_all = Served()
    try:
        code, said = open_to_all.get(PATH)
        assert (code, "set http_read_tokens" in said["detail"]) == (403, True)
    finally:
        open_to_all.close()
