"""Hangs of a command, with real processes: it is killed, its stacks are kept, and the next sidecar takes over."""

import os
import signal
import socket
import sys

import pytest

from tests.unit.ha.noting import NOTES, Notes, run, shown
from tests.unit.ha.programs import Workplace
from tests.unit.ha.sidecar.test_escalation import failures
from tests.unit.ha.waiting import wait_until

BEATS = (
    NOTES
    + """
from pathlib import Path
from ha.program.heartbeat import Heartbeat
beat = Heartbeat(Path(os.environ["HA_HEARTBEAT"]), float(os.environ["HA_HEARTBEAT_TIMEOUT"]), 0, lambda: {answer})
with beat:
    wait = lambda: None
    while not Path(os.environ["HA_HEARTBEAT"]).exists(): pass
    note("beats")
    stay()
"""
)
TIMEOUT = {"HA_HEARTBEAT_TIMEOUT": "2"}


@pytest.mark.timed
def test_a_frozen_driver_is_killed_and_the_next_sidecar_takes_over(workplace: Workplace, notes: Notes) -> None:
    source = BEATS.format(answer="None")
    first = run(workplace, "a", source, **TIMEOUT)
    _, _, pid, _ = notes.until(1, first)
    second = run(workplace, "b", source, **TIMEOUT)
    second.until_said("contending as b")
    os.kill(pid, signal.SIGSTOP)
    name, _, _, epoch = notes.until(2, second)
    assert epoch == 2, name
    assert shown(workplace, "job", "history")[0]["ended"] == "hang"
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
    assert "ha/program/heartbeat.py" in failure["dump"], sys.version


SERVES = (
    NOTES
    + """
import http.server
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", {port}), Answers)
note("serves")
server.serve_forever()
"""
)
COMMITS = (
    NOTES
    + """
from pathlib import Path
commits = Path(os.environ["HA_LEADER_DIRECTORY"].removeprefix("file://"), "spark", "clean", "commits")
commits.mkdir(parents=True, exist_ok=True)
for batch in range(3):
    (commits / str(batch)).touch()
note("commits")
stay()
"""
)


@pytest.mark.timed
def test_a_server_that_stops_answering_is_killed_and_the_next_sidecar_takes_over(
    workplace: Workplace, notes: Notes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    source = SERVES.format(port=port)
    probe = (f"--liveness-probe=http:http://127.0.0.1:{port}/", "--liveness-period=2")
    options = (*probe, "--liveness-failure-threshold=2", "--liveness-initial-delay=1")
    first = run(workplace, "a", source, *options)
    _, _, pid, _ = notes.until(1, first)
    second = run(workplace, "b", source, *options)
    second.until_said("contending as b")
    os.kill(pid, signal.SIGSTOP)
    name, _, _, epoch = notes.until(2, second)
    assert epoch == 2, name
    assert shown(workplace, "job", "history")[0]["ended"] == "probe-failed"
    (failure,) = [each for each in failures(workplace) if each["class"] == "probe-failed"]
    assert failure["epoch"] == 1
    assert failure["message"] == "The liveness probe has failed 2 times: it has no answer in time."
    assert f"process {pid} is stopped" in failure["dump"], "found among what the command has started"


def test_a_program_without_new_batches_is_killed(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", COMMITS, "--liveness-probe=progress:clean", "--liveness-period=0.5")
    notes.until(1, program)
    notes.until(2, program)
    failure = failures(workplace)[-1]
    assert (failure["class"], failure["epoch"]) == ("probe-failed", 1)
    assert failure["message"].endswith("3 times: there is no new batch; the newest is clean 2.")


def test_a_probe_that_makes_no_sense_is_refused_at_the_start(workplace: Workplace) -> None:
    told = run(workplace, "a", COMMITS, "--liveness-probe=ping")
    assert told.wait() == 2
    assert "liveness_probe is 'ping': it must be exec:COMMAND, http:URL" in told.said
