"""The canary: a history of real processes that breaks a promise fails its test."""

from pathlib import Path

import pytest

from ha.history.events import Believed, Event, Granted, LookedUp, load
from store.clock import now
from tests.system.integration.participants import LASTING, Team, new_job
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.slow]

SESSION = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("guarantee", ["S1", "S3", "R2"])
def test_a_team_whose_history_breaks_a_promise_fails(tmp_path: Path, guarantee: str) -> None:
    team = Team(new_job(), tmp_path, {**LASTING, "files": (tmp_path / "jobs").as_uri(), "zookeeper": ""})
    team.run("a")
    team.led_by("a")
    lies: dict[str, Event] = {
        "S1": Believed(now(), team.job, "liar", now() + 1, now() + 1),
        "S3": Granted(now(), team.job, "liar", 1, SESSION, "expired"),
        "R2": LookedUp(now(), team.job, now(), 2.0, "liar", "leader", 7, SESSION),
    }
    team.history.write(lies[guarantee])
    with pytest.raises(AssertionError, match=f"!! {guarantee}: .*liar"):
        team.__exit__()


def test_what_a_test_forged_is_not_held_against_readers(tmp_path: Path) -> None:
    with Team(new_job(), tmp_path, {**LASTING, "files": (tmp_path / "jobs").as_uri(), "zookeeper": ""}) as team:
        team.run("a")
        team.led_by("a")
        team.forged.add(SESSION)
        team.history.write(LookedUp(now(), team.job, now(), 2.0, "deceived", "leader", 7, SESSION))
        until(lambda: {"Believed", "Granted", "Published", "Ran", "LookedUp"} <= kinds(team), "the command runs")
    assert "Ended" in kinds(team)


def kinds(team: Team) -> set[str]:
    return {type(event).__name__ for event in load(Path(team.settings["history"]))}
