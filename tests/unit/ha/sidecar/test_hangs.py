"""Hangs of a driver, with real processes: its stacks are kept, it is killed, and the next sidecar takes over."""

import json
import os
import signal
import sys
from typing import Any

from tests.unit.ha.noting import NOTES, Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

BEATS = (
    NOTES
    + """
from pathlib import Path
from ha.spark.heartbeat import Heartbeat
beat = Heartbeat(Path(os.environ["HA_HEARTBEAT"]), float(os.environ["HA_HEARTBEAT_TIMEOUT"]), 0, lambda: {answer})
with beat:
    wait = lambda: None
    while not Path(os.environ["HA_HEARTBEAT"]).exists(): pass
    note("beats")
    stay()
"""
)
TIMEOUT = {"HA_HEARTBEAT_TIMEOUT": "2"}


def failures(workplace: Workplace) -> list[dict[str, Any]]:
    told = workplace.ha("exceptions", "orders", "--json")
    assert told.wait() == 0
    found: list[dict[str, Any]] = json.loads(told.output.read_text())
    return found


def history(workplace: Workplace) -> list[str]:
    told = workplace.ha("history", "orders", "--json")
    assert told.wait() == 0
    return [each["ended"] for each in json.loads(told.output.read_text())]


def test_a_frozen_driver_is_killed_and_the_next_sidecar_takes_over(workplace: Workplace, notes: Notes) -> None:
    source = BEATS.format(answer="None")
    first = run(workplace, "a", source, **TIMEOUT)
    _, _, pid, _ = notes.until(1, first)
    second = run(workplace, "b", source, **TIMEOUT)
    second.until_said("contending as b")
    os.kill(pid, signal.SIGSTOP)
    name, _, _, epoch = notes.until(2, second)
    assert epoch == 2, name
    assert history(workplace)[0] == "hang"
    (failure,) = [each for each in failures(workplace) if each["class"] == "hang"]
    assert failure["epoch"] == 1
    assert "did not answer" in failure["message"]
    assert f"process {pid} is stopped" in failure["dump"]


def test_the_stacks_of_a_driver_whose_jvm_does_not_answer_are_kept(workplace: Workplace, notes: Notes) -> None:
    source = (
        BEATS.format(answer='__import__("time").sleep(0 if wait.pop() else 3600)')
        .replace("with beat:", "wait = [False, True]\nwith beat:")
        .replace("    wait = lambda: None\n", "")
    )
    first = run(workplace, "a", source, **TIMEOUT)
    notes.until(1, first)
    wait_until(lambda: any(each["class"] == "hang" for each in failures(workplace)), what=f"a hang: {first.said}")
    (failure, *_) = [each for each in failures(workplace) if each["class"] == "hang"]
    assert "ha/spark/heartbeat.py" in failure["dump"], sys.version
