"""Sidecars that are killed, frozen and asked to resign, while both stores are well."""

import json
import logging
from typing import Any

import pytest

from store.clock import now
from tests.patience import PATIENCE_S
from tests.system.integration.lookups import Lookups
from tests.system.integration.participants import LASTING, QUICK, Participant, Team, runs
from tests.system.integration.waiting import SLACK_S, until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

SESSION_S = float(QUICK["session_timeout"])

log = logging.getLogger(__name__)


def frozen(participant: Participant) -> tuple[int, int, int]:
    """Freeze a sidecar, its guard and its command, as a paused machine would; return their process ids."""
    pids = (participant.pid, participant.guard, participant.command)
    assert all(pids)
    participant.freeze(*pids)
    return pids


@pytest.mark.parametrize("durations", [LASTING], ids=["lasting"])
def test_leadership_is_moved_by_hand(team: Team) -> None:
    """Resignation in favour of any standby, switchover to one of two, and an operator's view of both."""
    team.start("a", "b", "c")
    first = team.settle()
    with Lookups(team.job, team.settings, PATIENCE_S) as lookups:
        resigned = team.ha("job", "handover", team.job)
        assert resigned.returncode == 0, resigned.stderr
        second = team.led_by("b", "c")
        until(lambda: team.beats()[-1]["epoch"] == first.epoch + 1, "the second command runs")
        third = "c" if second == "b" else "b"
        until(lambda: team["a"].command == 0, "the old command has ended")

        moved = team.ha("job", "handover", team.job, "--to", third)
        said, undo = moved.stdout.splitlines()
        assert said == f"{team.job}: epoch {first.epoch + 1} -> {first.epoch + 2}, led by {third}"
        assert undo == f"`ha job handover {team.job} --to {second}` hands it back"
        assert team.led_by(third) == third
        until(lambda: team.beats()[-1]["epoch"] == first.epoch + 2, "the third command runs")
        assert team.ha("job", "handover", team.job, "--to", "nobody-like-that").returncode == 2

        # A former leader contends again, and can lead again.
        until(lambda: set(row(team)["contenders"]) == {"a", "b", "c"}, "all of them contend")
        assert team.ha("job", "handover", team.job, "--to", "a").returncode == 0
        team.led_by("a")
        until(lambda: team.beats()[-1]["epoch"] == first.epoch + 3, "the fourth command runs")
    lookups.check()
    assert team.check_one_at_a_time() == [first.epoch + n for n in range(4)]

    lines = json.loads(team.ha("job", "history", team.job, "--json").stdout)
    assert [(line["epoch"], line["contender"]) for line in lines] == [
        (first.epoch + n, name) for n, name in enumerate(("a", second, third, "a"))
    ]
    assert {line["reason"] for line in lines} == {"released"}
    assert row(team)["holder"] == "a"
    assert row(team)["epoch"] == first.epoch + 3


def row(team: Team) -> dict[str, Any]:
    listed = team.ha("job", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    rows: list[dict[str, Any]] = json.loads(listed.stdout)
    return next(each for each in rows if each["job"] == team.job)


@pytest.mark.timed
def test_sidecar_and_command_are_frozen_and_woken(team: Team) -> None:
    """S1, S2: a process that wakes up after a pause can write nothing, and is stopped."""
    leader = team.start("a", "b", writes=True)
    before = team.settle()
    sidecar, guard, command = frozen(leader)
    froze = now()
    team.led_by("b", seconds=SESSION_S + 1 + SLACK_S)
    log.info("A frozen machine was succeeded after %.1f s.", now() - froze)
    after = team.lease()[0]
    assert after.epoch == before.epoch + 1
    assert team.reason() == "session-gone", "who is frozen is not taken for dead"
    until(lambda: team.beats()[-1]["epoch"] == after.epoch, "the successor's command runs")

    # First the command alone: nobody is there yet to stop it, and every write of it is refused.
    woken = now()
    leader.wake(command)
    until(lambda: len(late(team, before.epoch, woken)) > 3, "the old command goes on")
    # The first may have been on its way, with a thread that is written off because its time is long over.
    assert all(beat["id"] == "Fenced" for beat in late(team, before.epoch, woken)[1:]), late(team, before.epoch, woken)
    assert all(beat["write"] == "NotFound" for beat in late(team, before.epoch, woken)[1:])
    assert team.entries() == {after.name}

    leader.wake(guard)
    until(lambda: not runs(command), "the old command is stopped", SLACK_S)
    leader.wake(sidecar)
    until(lambda: leader.said("revoked"), "the woken sidecar knows that it leads no more")
    assert team.entries() == {after.name}

    # It is a standby now, and leads next.
    team["b"].kill()
    team.led_by("a", seconds=SESSION_S + 1 + SLACK_S)
    assert team.lease()[0].epoch == after.epoch + 1
    ids = [beat["id"] for beat in team.beats() if isinstance(beat["id"], int)]
    assert len(ids) == len(set(ids))


def late(team: Team, epoch: int, since: float) -> list[dict[str, object]]:
    return [beat for beat in team.beats() if beat["epoch"] == epoch and beat["at"] > since]


@pytest.mark.timed
def test_the_sidecar_alone_is_frozen(team: Team) -> None:
    """S1: the guard ends the command before anybody else can lead; the sidecar that wakes up stands by."""
    leader = team.start("a", "b")
    before, command = team.settle(), leader.command
    froze = now()
    leader.freeze()
    until(lambda: not runs(command), "the command is killed", SESSION_S + SLACK_S)
    log.info("The guard killed the command of a frozen sidecar after %.1f s.", now() - froze)
    # The successor starts only after that: the order is checked by the times that the commands wrote themselves.
    team.led_by("b", seconds=SESSION_S + 1 + SLACK_S)
    until(lambda: team.beats()[-1]["epoch"] == before.epoch + 1, "the successor's command runs")
    assert team.check_one_at_a_time() == [before.epoch, before.epoch + 1]
    leader.wake()
    until(lambda: leader.said("revoked"), "the woken sidecar knows that it leads no more")
    until(lambda: "a" in team.contenders(), "it contends")
    assert team.ha("job", "handover", team.job, "--to", "a").returncode == 0
    team.led_by("a")
