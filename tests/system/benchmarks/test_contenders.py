"""Tests of both baselines with real processes and a real ZooKeeper: a comparison needs baselines that work."""

import signal

import pytest

from ha.drill.judge import overlap
from ha.history.checker import check_beliefs
from ha.history.events import Believed, LookedUp, Published, Ran, Revoked
from ha.sandbox import Sandbox
from store.clock import now
from tests.system.benchmarks.contenders import SESSION_S, Contenders, kill
from tests.system.integration.participants import runs
from tests.system.integration.waiting import SLACK_S, until

pytestmark = pytest.mark.zookeeper


def test_a_standby_takes_over_from_a_killed_contender_whose_command_dies_with_it(contenders: Contenders) -> None:
    first = contenders.start("b")
    command = contenders.commands("a")[0]
    at = kill(contenders, "a")
    until(lambda: not runs(command), "the command dies with its contender", SLACK_S)
    second = contenders.led_by("b")
    assert second.epoch > first.epoch
    assert second.at - at < SESSION_S + SLACK_S
    assert contenders.beats() == ["a", "b"]
    published = contenders.events(Published)
    assert [(each.epoch, each.endpoints) for each in published] == [
        (first.epoch, {"jobmaster": "a"}),
        (second.epoch, {"jobmaster": "b"}),
    ]
    # A belief that was never taken back does not outlive the contender by much.
    until(lambda: contenders.events(Believed, second.at), "b believes to lead")
    assert not list(check_beliefs(contenders.events(Believed)))


def test_exit_code_0_ends_all_and_another_one_hands_over(contenders: Contenders) -> None:
    first = contenders.start("b")
    contenders.tell("a", 3)
    second = contenders.led_by("b")
    assert second.at - contenders.events(Revoked)[0].at < SLACK_S  # no contender waits for a session to end
    contenders.tell("b", 0)
    assert [contenders.code("b"), contenders.code("a")] == [0, 0]
    assert contenders.beats() == ["a", "b"]
    ran = contenders.events(Ran)
    assert [(each.contender, each.epoch, each.running) for each in ran] == [
        ("a", first.epoch, True),
        ("a", first.epoch, False),
        ("b", second.epoch, True),
        ("b", second.epoch, False),
    ]
    assert [each.reason for each in contenders.events(Revoked)] == [
        "The command has ended with 3.",
        "The command has ended with 0.",
    ]


def test_a_contender_that_is_told_to_stop_stops_its_command_first(contenders: Contenders) -> None:
    contenders.start("b")
    command = contenders.commands("a")[0]
    assert contenders.signal("a", signal.SIGTERM) == 128 + signal.SIGTERM
    assert not runs(command)
    (revoked,) = contenders.events(Revoked)
    assert revoked.reason == "The contender was stopped."
    assert [each.running for each in contenders.events(Ran) if each.contender == "a"] == [True, False]
    assert [each for each in contenders.events(Believed) if each.contender == "a"][-1].leads_until is None
    assert contenders.led_by("b").at - revoked.at < SLACK_S


def test_while_zookeeper_is_away_no_command_runs_and_lookups_end(contenders: Contenders, sandbox: Sandbox) -> None:
    contenders.read()
    first = contenders.start("b")
    command = contenders.commands("a")[0]
    until(lambda: [each for each in contenders.events(LookedUp) if each.outcome == "leader"], "a lookup is answered")
    try:
        for name in sandbox.names():
            if name.startswith("zookeeper"):
                sandbox.kill(name)
        until(lambda: not contenders.runs("a"), "the command does not run", SESSION_S + SLACK_S)
        until(lambda: not contenders.events(Ran)[-1].running, "and that is written down")
        # kazoo's documentation says to pause, Curator's that the leadership is over.
        assert runs(command) == (contenders.baseline == "kazoo")
        gone = now()
        until(
            lambda: [each for each in contenders.events(LookedUp, gone) if each.outcome == "unreachable"],
            "a lookup is not answered",
        )
    finally:
        sandbox.up()
    back = now()
    until(lambda: any(each.running for each in contenders.events(Ran, gone)), "a command runs again")
    until(lambda: [each for each in contenders.events(LookedUp, back) if each.outcome == "leader"], "and is found")
    assert overlap(contenders.events(Ran)) == 0
    lookups = contenders.events(LookedUp)
    assert max(each.ended - each.at for each in lookups) < 0.5 + SLACK_S
    answer = next(each for each in lookups if each.outcome == "leader")
    assert (answer.epoch, answer.session_id, answer.endpoints) == (first.epoch, first.session_id, {"jobmaster": "a"})
