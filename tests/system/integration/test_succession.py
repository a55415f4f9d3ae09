"""A sidecar is killed, and the next one on its host takes up its leadership and its command; a standby looks on."""

import logging
from pathlib import Path

import pytest

from store.clock import now
from tests.system.integration.participants import Team, runs
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

PATIENT = {"session_timeout": "30", "short_ttl": "30", "long_ttl": "90", "adopt_within": "60"}
"""So long that a busy machine has the time to start a process."""

log = logging.getLogger(__name__)


def test_the_same_command_goes_on_under_another_sidecar(job: str, tmp_path: Path, stores: dict[str, str]) -> None:
    with Team(job, tmp_path, {**stores, **PATIENT}) as team:
        leader = team.start("a", "b", writes=True)
        before, command, guard = team.settle_watched(), leader.command, leader.guard
        token, where = team.lease()[1].attestation, team.contact()
        leader.kill()
        beats = len(team.beats())
        began = now()
        team.run("a", writes=True)
        until(lambda: team["a"].said("(adopted)"), "the new sidecar has taken up the leadership")
        log.info("A killed sidecar's leadership was taken up %.2f s after the new one was started.", now() - began)
        assert team.contact() == where, "it greets with the old word, at the old port"
        assert team.settle() == before, "and ZooKeeper attests its session"
        assert team.lease()[1].attestation != token
        until(lambda: len(team.beats()) > beats + 3, "the command works")
        assert runs(command)
        assert team.settle_watched() == before, "nobody else has seized it"
        assert {beat["epoch"] for beat in team.beats()} == {before.epoch}

        team["a"].terminate()
        until(lambda: not runs(guard), "the command has ended with its sidecar")
        team.led_by("b")
        until(lambda: team.beats()[-1]["epoch"] == before.epoch + 1, "the next command runs")
        assert team.check_one_at_a_time() == [before.epoch, before.epoch + 1]
        assert [(each.contender, each.reason, each.adopted_by) for each in team.grants()] == [
            ("a", "released", "a"),
            ("b", "released", ""),
        ]
        team["b"].terminate()


def test_if_nobody_comes_the_standby_takes_over(job: str, tmp_path: Path, stores: dict[str, str]) -> None:
    with Team(job, tmp_path, {**stores, **PATIENT, "adopt_within": "1"}) as team:
        leader = team.start("a", "b")
        before, command = team.settle_watched(), leader.command
        killed = leader.kill()
        team.led_by("b")
        log.info("A sidecar that did not come back was succeeded within %.2f s.", now() - killed)
        assert not runs(command)
        assert team.lease()[0].epoch == before.epoch + 1
        assert team.reason() == "process-gone", "the listener was open until then"
        assert team.check_one_at_a_time()[0] == before.epoch
        team["b"].terminate()
