"""Grant file: tells a waiting command which leadership was granted."""

import threading
from pathlib import Path

import pytest

import ha
from ha.leadership.deadline_file import DeadlineWriter
from ha.leadership.grant_file import grant, take, taken
from leader.errors import NotLeader
from leader.layout.names import LeaderDirectory
from store.clock import now
from tests.unit.ha.led import session

DIRECTORY = LeaderDirectory(7, session(7))


def test_a_grant_can_be_taken_repeatedly(tmp_path: Path) -> None:
    grant(tmp_path / "grant", DIRECTORY)
    assert not taken(tmp_path / "grant")
    for _ in range(2):
        assert take(tmp_path / "grant", 0) == DIRECTORY
        assert taken(tmp_path / "grant")


def test_a_waiting_program_gets_its_grant(tmp_path: Path) -> None:
    told: list[LeaderDirectory] = []
    waits = threading.Thread(target=lambda: told.append(take(tmp_path / "grant", None)))
    waits.start()
    grant(tmp_path / "grant", DIRECTORY)
    waits.join()
    assert told == [DIRECTORY]


def test_a_grant_that_does_not_appear_in_time_raises(tmp_path: Path) -> None:
    with pytest.raises(NotLeader, match=r"not granted the job in 0\.05 s"):
        take(tmp_path / "grant", 0.05)


def test_a_sidecar_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NotLeader, match="sidecar is gone"):
        take(tmp_path / "gone" / "grant", None)


def test_invalid_content_is_no_grant(tmp_path: Path) -> None:
    (tmp_path / "grant").write_text("here")
    with pytest.raises(NotLeader, match="does not hold a grant"):
        take(tmp_path / "grant", None)
    assert not taken(tmp_path / "grant")


def test_a_program_that_waits_for_its_grant(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    belief = DeadlineWriter(tmp_path / "belief")
    told = {
        "HA_JOB": "orders",
        "HA_EPOCH": "",
        "HA_SESSION_ID": "",
        "HA_GRANT": str(tmp_path / "grant"),
        "HA_BELIEF": str(belief.path),
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NotLeader, match="not granted"):
        ha.lead("orders", timeout=0.05).__enter__()
    belief.write(now() + 100, now() + 200)
    grant(tmp_path / "grant", DIRECTORY)
    with ha.lead("orders") as leadership:
        assert leadership.is_leader()
        assert leadership.directory == f"{quick.as_uri()}/orders/{DIRECTORY.name}"
    belief.close()
