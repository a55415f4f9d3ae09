"""The setting `history`: the events that each kind of process records; by default none does."""

import json
import sys
from pathlib import Path

import pytest

import ha
from ha.history.checker import check
from ha.history.events import Believed, Completed, Counted, Event, Granted, LookedUp, Published, Ran, Revoked, load
from leader.errors import NoLeader
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

LEADS = """
import ha, os, signal
with ha.lead("orders") as leadership:
    leadership.checkpoints.next()
    leadership.checkpoints.completed("daily", 4)
    if os.environ.get("STAYS"):
        print("leads", flush=True)
        while True: signal.pause()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: Path) -> Path:
    assert quick.parent == tmp_path
    monkeypatch.setenv("HA_HISTORY", str(tmp_path / "history"))
    return tmp_path / "history"


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events if not isinstance(event, Believed)]


def test_by_default_there_is_none(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership, ha.connect() as client:
        leadership.checkpoints.next()
        client.leader("orders")
    assert list(quick.parent.iterdir()) == [quick]


def test_a_block_of_ha_lead(folder: Path) -> None:
    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, contender="a") as leadership:
        leadership.checkpoints.next()
        leadership.checkpoints.completed("daily", 4)
        epoch, session_id = leadership.epoch, leadership.session_id
    events = load(folder)
    assert kinds(events) == ["Granted", "Published", "Ran", "Counted", "Completed", "Revoked", "Ran"]
    assert [event.running for event in events if isinstance(event, Ran)] == [True, False]
    (granted,) = [event for event in events if isinstance(event, Granted)]
    assert (granted.contender, granted.epoch, granted.session_id) == ("a", epoch, session_id)
    (published,) = [event for event in events if isinstance(event, Published)]
    assert published.endpoints == {"rest": "a:1"}
    beliefs = [event for event in events if isinstance(event, Believed)]
    assert beliefs[0].leads_until is None, "first it holds the lease, then it leads"
    assert beliefs[0].holds_until is not None
    assert [each.leads_until for each in beliefs[-1:]] == [None]
    assert beliefs[1].at < granted.at, "first the belief, then what follows from it"
    (file,) = folder.iterdir()
    assert file.name.startswith("a-")
    assert check(events) == []


def test_a_client(folder: Path) -> None:
    with ha.connect() as client, ha.connect() as other:
        with pytest.raises(NoLeader):
            client.leader("orders")
        with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S) as leadership:
            client.leader("orders", 5.0)
            client.report("orders", leadership.session_id)
            watch = other.watch("orders")
            assert next(watch) is not None
            client.checkpoint("orders")
    events = load(folder)
    lookups = [event for event in events if isinstance(event, LookedUp)]
    assert [event.outcome for event in lookups] == ["none", "leader", "leader", "leader"]
    assert [event.timeout for event in lookups[:3]] == [2.0, 5.0, 2.0]
    assert len({event.reader for event in lookups}) == 2
    assert kinds(events).count("CheckpointsRead") == 1
    assert check(events) == []


def test_a_sidecar_its_command_and_the_command_line(workplace: Workplace) -> None:
    folder = workplace.directory / "history"
    command = (sys.executable, "-c", LEADS)
    given = {"HA_HISTORY": str(folder)}
    sidecar = workplace.ha("run", "orders", "--contender", "a", "--endpoint", "rest=a:1", "--", *command, **given)
    assert sidecar.wait() == 0
    assert workplace.ha("job", "leader", "orders", **given).wait() == 3
    events = load(folder)
    named = [event for event in events if getattr(event, "contender", "") == "a"]
    assert kinds(named) == ["Granted", "Ran", "Published", "Ran", "Revoked"] or kinds(named) == [
        *("Granted", "Published", "Ran", "Ran", "Revoked")
    ]
    (counted,) = [event for event in events if isinstance(event, Counted)]
    (completed,) = [event for event in events if isinstance(event, Completed)]
    assert (counted.id, counted.epoch, completed.query, completed.batch) == (1, 1, "daily", 4)
    assert [event.outcome for event in events if isinstance(event, LookedUp)] == ["none"]
    assert len(list(folder.iterdir())) == 3
    assert workplace.ha("lab", "check", str(folder)).wait() == 0


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_sidecar_that_is_killed_and_its_successor(workplace: Workplace) -> None:
    folder = workplace.directory / "history"
    given = {"HA_HISTORY": str(folder), "STAYS": "1"}
    first, second = (
        workplace.ha("run", "orders", "--contender", name, "--", sys.executable, "-c", LEADS, **given) for name in "ab"
    )
    by_name = {"a": first, "b": second}
    wait_until(lambda: [event for event in load(folder) if isinstance(event, Counted)], what="the first one counts")
    (granted,) = [event for event in load(folder) if isinstance(event, Granted)]
    by_name[granted.contender].process.kill()
    wait_until(lambda: sum(isinstance(event, Counted) for event in load(folder)) == 2, what="its successor counts")
    events = load(folder)
    assert [event.epoch for event in events if isinstance(event, Granted)] == [1, 2]
    assert [event.id for event in events if isinstance(event, Counted)] == [1, 3], "2 is that of what was completed"
    assert not [event for event in events if isinstance(event, Revoked)], "whom nobody asked, nobody heard"
    assert check(events) == []


def test_a_daemon(workplace: Workplace) -> None:
    folder = workplace.directory / "history"
    (workplace.work / "ha.toml").write_text(f"history = {json.dumps(str(folder))}\n")
    daemon = workplace.ha("host", "daemon", "orders", "bills", "--contender", "a")
    wait_until(lambda: folder.exists() and sum(isinstance(event, Published) for event in load(folder)) == 2)
    daemon.process.terminate()
    assert daemon.wait() == 0
    events = load(folder)
    assert {event.job for event in events if isinstance(event, Granted)} == {"orders", "bills"}
    assert sum(isinstance(event, Revoked) for event in events) == 2
    assert check(events) == []
