"""Tests of the takeover benchmark: its summary, and one round of real contenders on local files."""

import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import takeover
from benchmarks.takeover.network import GATEWAY, LostHost, Network, NoNetwork, network
from benchmarks.takeover.pair import CURATOR, HERE, KAZOO, WITH_AGENT, Pair
from benchmarks.takeover.readers import HereReader
from benchmarks.takeover.trial import KILL, LOSS, OUTAGE, RESIGN, YOUNG, Takeover, Trial
from ha.sandbox import Sandbox

NEVER = math.inf


def taken(system: str, *seconds: float, fault: str = KILL.name, timeout: float = 10.0) -> list[Takeover]:
    return [Takeover(system, fault, timeout, each, each / 2) for each in seconds]


def test_a_takeover_is_over_when_the_leader_knows_it_and_can_be_found() -> None:
    assert Takeover("", "", 10.0, granted=1.0, found=2.0).seconds == 2.0
    assert Takeover("", "", 10.0, granted=3.0, found=2.0).seconds == 3.0
    assert Takeover("", "", 10.0, granted=3.0, found=NEVER).seconds == NEVER


def test_targets_compare_medians_and_the_slowest_loss() -> None:
    found = [
        *taken(HERE.name, 0.4, 0.5, 9.0),
        *taken(KAZOO.name, 10.0, 10.0, 0.1),
        *taken(CURATOR.name, 4.0, 4.0, 4.0),
        *taken(HERE.name, 10.0, 11.0, fault=LOSS.name),
        *taken(HERE.name, 4.8, 4.0, fault=LOSS.name, timeout=4.0),
    ]
    result = takeover.report(found, [])
    assert [each.measured for each in result.targets[:3]] == pytest.approx([20, 8, 1.2])
    assert [each.met for each in result.targets] == [True, False, False, False, False, False]
    kazoo = next(row for row in result.rows if row[1] == KAZOO.name)
    assert kazoo == (KILL.name, KAZOO.name, 10.0, 10.0, 10.0, 5.0, 20.0)


def test_the_slower_of_two_readers_counts_and_an_orderly_end_is_compared_with_kazoos() -> None:
    found = [
        *taken(HERE.name, 0.2, 0.3, 9.0, fault=OUTAGE.name),
        *taken(WITH_AGENT, 0.4, 0.5, 9.0, fault=OUTAGE.name, timeout=4.0),
        *taken(HERE.name, 1.2, fault=YOUNG.name),
        *taken(WITH_AGENT, 0.1, fault=YOUNG.name),
        *taken(HERE.name, 0.2, 0.3, 0.4, fault=RESIGN.name),
        *taken(KAZOO.name, 0.2, 0.2, 0.2, fault=RESIGN.name),
    ]
    targets = takeover.report(found, []).targets[3:]
    assert [each.measured for each in targets] == pytest.approx([0.5, 1.2, 1.5])
    assert [each.met for each in targets] == [True, False, False]


def test_what_could_not_be_measured_misses_its_target_and_comes_first() -> None:
    result = takeover.report(taken(HERE.name, 1.0), ["NOT MEASURED: no root."])
    assert result.notes[0] == "NOT MEASURED: no root."
    assert not any(each.met for each in result.targets)


def test_all_three_run_the_same_command() -> None:
    commands = [each.command("orders", "a") for each in (HERE, KAZOO, CURATOR)]
    assert {tuple(each[each.index("--") :]) for each in commands} == {("--", "sleep", "infinity")}
    assert all(each[each.index("--contender") + 1] == "a" for each in commands)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[tuple[Pair, Trial]]:
    variables = {"HA_FILES": f"file://{tmp_path}/jobs", "HA_ZOOKEEPER": "", "HA_SNAPSHOTS": "off"}
    variables |= {"HA_SHORT_TTL": "2", "HA_SESSION_TIMEOUT": "4"}
    reader = HereReader(variables, 4.0)
    pair = Pair(HERE, "orders", {**os.environ, **variables}, tmp_path, [None, None])
    reader.follow("orders")
    try:
        yield pair, Trial(Sandbox(tmp_path / "none"), KILL, 4.0, {HERE.name: reader})
    finally:
        pair.end()
        reader.close()


@pytest.mark.slow
def test_a_round_with_real_contenders(local: tuple[Pair, Trial]) -> None:
    """The standby leads after the lease has run out, and at once after an orderly end; then it is the leader."""
    pair, killing = local
    said: list[str] = []
    (killed,) = killing.round([pair], said.append)
    assert 0 < killed.granted < NEVER
    assert 0 < killed.found < NEVER
    survivor = pair.leader
    resigning = Trial(killing.sandbox, RESIGN, 4.0, killing.readers)
    (resigned,) = resigning.round([pair], said.append)
    assert resigned.seconds < NEVER
    assert not survivor.running
    young = Trial(killing.sandbox, YOUNG, 4.0, killing.readers)
    (youth,) = young.round([pair], said.append)
    assert youth.seconds < NEVER
    assert said == [
        "SIGKILL of the leading process, 4 s: 1 of 1 taken over",
        "orderly end, 4 s: 1 of 1 taken over",
        "SIGKILL of a leader that is 3 s old, 4 s: 1 of 1 taken over",
    ]


def reaches(host: LostHost, port: int) -> bool:
    # A packet sent while a link comes up can be lost; it is sent again after a second.
    connect = f"import socket; socket.create_connection(({GATEWAY!r}, {port}), 3)"
    command = host.command([sys.executable, "-I", "-c", connect])
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


@pytest.mark.slow
def test_a_lost_host_reaches_nobody() -> None:
    try:
        with network() as bridge, socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            host, other = bridge.host(), bridge.host()
            assert reaches(host, port)
            host.lose()
            assert not reaches(host, port)
            assert reaches(other, port)
            host.restore()
            assert reaches(host, port)
            with pytest.raises(NoNetwork, match="another benchmark"), network():
                pass
    except NoNetwork as error:
        pytest.skip(f"No host can be lost here: {error}.")


def test_a_process_of_such_a_host_finds_the_servers_at_the_bridge() -> None:
    assert Network().environment({"HA_FILES": "hdfs://127.0.0.1:9000/ha"}) == {"HA_FILES": f"hdfs://{GATEWAY}:9000/ha"}
