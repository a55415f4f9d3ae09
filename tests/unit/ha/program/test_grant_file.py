"""Grant file: tells a waiting command which leadership was granted."""

import threading
from pathlib import Path

import pytest

import ha
from ha.program.deadline_file import DeadlineWriter
from ha.program.grant_file import awaited_since, grant, granted, take, taken
from leader.errors import NotLeader
from leader.layout.names import LeaderDirectory
from store.clock import now
from tests.limits import joined
from tests.unit.ha.led import session
from tests.unit.ha.waiting import wait_until

DIRECTORY = LeaderDirectory(7, session(7))
URI = f"hdfs://names:8020/ha/orders/{DIRECTORY.name}"


def test_a_grant_can_be_taken_repeatedly(tmp_path: Path) -> None:
    grant(tmp_path / "grant", DIRECTORY, URI)
    assert not taken(tmp_path / "grant")
    for _ in range(2):
        assert take(tmp_path / "grant", 0) == DIRECTORY
        assert taken(tmp_path / "grant")


def test_a_waiting_program_gets_its_grant(tmp_path: Path) -> None:
    told: list[LeaderDirectory] = []
    waits = threading.Thread(target=lambda: told.append(take(tmp_path / "grant", None)))
    waits.start()
    grant(tmp_path / "grant", DIRECTORY, URI)
    joined(waits)
    assert told == [DIRECTORY]


def test_a_grant_that_does_not_appear_in_time_raises(tmp_path: Path) -> None:
    with pytest.raises(NotLeader, match=r"not granted the job in 0\.05 s"):
        take(tmp_path / "grant", 0.05)


def test_a_directory_that_is_gone_for_a_while(tmp_path: Path) -> None:
    """A cleaner of the host took it, and the sidecar makes it again. Once the sidecar is gone, the guard acts."""
    folder = tmp_path / "gone"
    told: list[LeaderDirectory] = []
    waits = threading.Thread(target=lambda: told.append(take(folder / "grant", None)))
    waits.start()
    folder.mkdir()
    wait_until(lambda: awaited_since(folder / "grant"), what="it says that it waits")
    grant(folder / "grant", DIRECTORY, URI)
    joined(waits)
    assert told == [DIRECTORY]


def test_a_grant_is_read_by_processes_that_do_not_take_it(tmp_path: Path) -> None:
    assert granted(tmp_path / "grant") is None
    grant(tmp_path / "grant", DIRECTORY, URI)
    assert granted(tmp_path / "grant") == (DIRECTORY, URI)
    assert not taken(tmp_path / "grant")


@pytest.mark.parametrize("text", ["here", "here\nhdfs://names:8020/ha"])
def test_invalid_content_is_no_grant(tmp_path: Path, text: str) -> None:
    (tmp_path / "grant").write_text(text)
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
    grant(tmp_path / "grant", DIRECTORY, URI)
    with ha.lead("orders") as leadership:
        assert leadership.is_leader()
        assert leadership.directory == f"{quick.as_uri()}/orders/{DIRECTORY.name}"
    belief.close()
