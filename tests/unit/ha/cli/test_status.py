"""``ha host status``: asks real processes of this host."""

import json
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.config.snapshot_dir import SnapshotDirectory
from ha.daemon import local_registry
from ha.daemon.local_registry import SUFFIX, LocalRegistry, local_processes
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, STAYS, Notes, run
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

WARMS = NOTES.replace('int(os.environ["HA_EPOCH"])', "0") + "note('warms')\nstay()"
WAITS = "import ha\nwith ha.lead('orders'): pass"


LASTING = {"HA_SHORT_TTL": "20", "HA_LONG_TTL": "60"}
"""Leases that outlive every pause of a busy machine."""


def shown(workplace: Workplace, *programs: Program) -> list[dict[str, Any]]:
    """Return what `ha host status --json` shows of these programs only: other tests may run at the same time.

    It is asked again if one of them did not answer in time.
    """

    def answers() -> list[dict[str, Any]]:
        asked = workplace.ha("host", "status", "--json")
        assert asked.wait() == 0, asked.said
        found = {each["pid"]: each for each in json.loads(asked.output.read_text())}
        wanted = [found[program.pid] for program in programs]
        return [] if any(each["error"] for each in wanted) else wanted

    return wait_until(answers, what="all of them answer")


def command(workplace: Workplace, program: Program) -> dict[str, Any]:
    """Return what it shows of the command of one program."""
    ((one,),) = [each["jobs"] for each in shown(workplace, program)]
    found: dict[str, Any] = one["command"]
    return found


def test_a_leader_and_its_warm_standby(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS, **LASTING)
    notes.until(1, first)
    assert command(workplace, first)["state"] == "running"
    second = run(workplace, "b", WAITS, "--standby", "warm", **LASTING)
    third = run(workplace, "c", WARMS, "--standby", "warm", **LASTING)
    second.until_said("contending as b")
    wait_until(lambda: command(workplace, second)["state"] == "warm", what="b is warm")
    notes.until(2, third)
    ((leads,), (waits,), (warms,)) = [each["jobs"] for each in shown(workplace, first, second, third)]
    assert [each["contender"] for each in (leads, waits, warms)] == ["a", "b", "c"]
    assert [each["is_leader"] for each in (leads, waits, warms)] == [True, False, False]
    assert [each["command"]["state"] for each in (leads, waits, warms)] == ["running", "warm", "warming"]
    assert all(each["command"]["memory_bytes"] > 2**20 for each in (leads, waits, warms))

    def row() -> tuple[str, ...]:
        table = workplace.ha("host", "status", "orders")
        assert table.wait() == 0
        rows = {cells[2:4]: cells for line in table.output.read_text().splitlines() if (cells := tuple(line.split()))}
        return rows.get(("sidecar", str(first.pid)), ())

    of_first = wait_until(row, what="the first answers")
    assert (of_first[:2], of_first[4:6]) == (("orders", "a"), ("leader", "1"))
    assert of_first[-1] == "MiB"


def test_a_command_that_is_about_to_be_started_again(workplace: Workplace) -> None:
    later = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_DELAY": "9999"}
    program = run(workplace, "a", "import sys; sys.exit(3)", **LASTING, **later)
    program.until_said("is started again in 9999.0 s")
    found = command(workplace, program)
    assert {name: found[name] for name in ("state", "starts", "processes", "memory_bytes")} == {
        "state": "restarting",
        "starts": 1,
        "processes": 0,
        "memory_bytes": 0,
    }


def test_daemons_and_agents_are_there_too(workplace: Workplace) -> None:
    daemon, agent = workplace.ha("host", "daemon", "orders"), workplace.ha("host", "agent")
    for program in (daemon, agent):
        program.until_said("The HTTP API answers at")
    wait_until(lambda: {daemon.pid, agent.pid} <= {each["pid"] for each in local_processes()})
    led, idle = shown(workplace, daemon, agent)
    assert (led["process"], led["jobs"][0]["command"]) == ("daemon", None)
    assert (idle["process"], idle["jobs"]) == ("agent", [])
    for program in (daemon, agent):
        program.send(signal.SIGTERM)
        assert program.wait() == 0
    assert not {daemon.pid, agent.pid} & {each["pid"] for each in local_processes()}


def test_who_was_killed_is_not_there_and_who_was_stopped_does_not_answer(workplace: Workplace) -> None:
    killed, stopped = (workplace.ha("host", "daemon", name) for name in ("killed", "stopped"))
    wait_until(lambda: {killed.pid, stopped.pid} <= {each["pid"] for each in local_processes()})
    killed.send(signal.SIGKILL)
    killed.wait()
    stopped.freeze()
    found = {each["pid"]: each for each in local_processes()}
    assert killed.pid not in found
    assert found[stopped.pid]["error"] == f"Process {stopped.pid} does not answer."


@pytest.fixture
def place() -> Iterator[SnapshotDirectory]:
    """A directory with a short name: that of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ha-") as folder:
        yield SnapshotDirectory(Path(folder, "base"), "processes", "", 0o700)


@pytest.mark.parametrize(("length", "offered"), [(107, True), (108, False)])
def test_only_a_socket_that_can_be_connected_to_is_offered(length: int, offered: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="ha-") as folder:
        bare = SnapshotDirectory(Path(folder, "b"), "processes", "", 0o700)
        missing = length - len(f"{bare.path}/{os.getpid()}-12345678{SUFFIX}")
        place = SnapshotDirectory(Path(folder, "b" * (1 + missing)), "processes", "", 0o700)
        presence = LocalRegistry("daemon", list, place)
        presence.start()
        assert [each["error"] for each in local_processes(place)] == ([None] if offered else [])
        presence.close()


def test_a_directory_that_others_can_write_in_is_not_believed(place: SnapshotDirectory) -> None:
    presence = LocalRegistry("daemon", list, place)
    presence.start()
    assert [each["pid"] for each in local_processes(place)] == [os.getpid()]
    presence.close()
    place.path.chmod(0o777)
    with pytest.raises(PermissionError):
        local_processes(place)


def test_a_process_that_cannot_be_seen_goes_on(place: SnapshotDirectory, caplog: pytest.LogCaptureFixture) -> None:
    place.base.write_text("in the way")
    presence = LocalRegistry("daemon", list, place)
    presence.start()
    presence.close()
    assert "`ha host status` does not see this process" in caplog.text


def test_nonsense_is_no_answer(place: SnapshotDirectory) -> None:
    presence = LocalRegistry("daemon", list, place)
    presence.start()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place.path / f"7-x{SUFFIX}"))
        other.listen()
        found = local_processes(place)
    presence.close()
    assert [each["error"] for each in found] == ["Process 7 does not answer.", None]


def test_a_contender_that_hangs_says_so(place: SnapshotDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_registry, "ANSWER_WITHIN_S", PATIENCE_S)

    def hang() -> list[dict[str, Any]]:
        raise TimeoutError

    presence = LocalRegistry("sidecar", hang, place)
    presence.start()
    assert [each["error"] for each in local_processes(place)] == ["The contender's thread does not answer."]
    presence.close()
    assert local_processes(place) == []
