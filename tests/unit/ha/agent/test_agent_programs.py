"""The agent as a program: ``ha host agent``, and the agent of ``ha run``."""

import signal
from pathlib import Path

from ha.client import Client
from ha.config.sources import load
from leader.errors import NoLeader
from leader.lookup.answers import Source
from tests.patience import PATIENCE_S
from tests.unit.ha.led import Led
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until


def test_ha_agent_killed_frozen_and_started_again(led: Led, workplace: Workplace, tmp_path: Path) -> None:
    given = {"HA_SNAPSHOTS": str(tmp_path / "snapshots"), "HA_AUDIT": "10"}
    led.claim("orders", "a:1")
    settings = load({"files": led.files.uri, "snapshots": given["HA_SNAPSHOTS"], "audit": 10})
    first = workplace.ha("host", "agent", "orders", "--files", led.files.uri, **given)
    with Client(settings) as client:

        def source(wanted: Source) -> bool:
            answer = client.leader("orders", PATIENCE_S)
            assert answer.epoch == 1
            return answer.source is wanted

        wait_until(lambda: source(Source.SNAPSHOT), what=first.said)
        first.freeze()
        wait_until(lambda: source(Source.HDFS), what="a frozen agent's snapshots run out")
        first.send(signal.SIGCONT)
        wait_until(lambda: source(Source.SNAPSHOT))
        first.send(signal.SIGKILL)
        first.wait()
        wait_until(lambda: source(Source.HDFS))
        second = workplace.ha("host", "agent", "--files", led.files.uri, **given)
        wait_until(lambda: source(Source.SNAPSHOT), what=second.said)
        second.send(signal.SIGTERM)
        assert second.wait() == 0
        assert "Traceback" not in second.said
        wait_until(lambda: source(Source.HDFS))


def test_ha_run_answers_for_its_host(workplace: Workplace, tmp_path: Path) -> None:
    given = {"HA_SNAPSHOTS": str(tmp_path / "snapshots"), "HA_AUDIT": "10"}
    program = workplace.ha("run", "orders", "--endpoint", "rest=a:1", "--", "sleep", "600", **given)
    settings = load({"files": workplace.jobs.as_uri(), "snapshots": given["HA_SNAPSHOTS"], "audit": 10})
    with Client(settings) as client:

        def answered() -> bool:
            try:
                return client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
            except NoLeader:
                return False

        wait_until(answered, what=program.said)
        assert dict(client.leader("orders", PATIENCE_S).endpoints) == {"rest": "a:1"}
