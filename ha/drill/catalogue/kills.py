"""Something dies: the sidecar, the driver, the Java virtual machine under it, or the host with all of them."""

from ha.drill.drill import Drill, Expected, changed
from ha.drill.ground import Ability, DrillError
from ha.drill.stage import Stage

NOTICED = 8.0
"""Seconds until a driver whose parts are gone has ended: five that the rest of its group has, and what Spark takes."""


def _kill_sidecar(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch
    stage.strike(f"kill -9 of the leading sidecar, {leader.name}", lambda: stage.gone(leader, leader.kill))
    stage.await_leader(epoch)
    stage.contend(leader.name)
    stage.batches()


def _kill_below(stage: Stage, what: str, called: str) -> None:
    leader, epoch = stage.leader, stage.epoch

    def kill() -> None:
        if not leader.strike(what):
            raise DrillError(f"{leader.name} has no {called} that could be killed.")

    stage.strike(f"kill -9 of the {called} of {leader.name}", kill)
    stage.await_leader(epoch)
    stage.batches()


def _lose_host(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch
    stage.lost.add(leader.name)
    stage.strike(f"the host of {leader.name} is lost: no answer, no refusal", lambda: stage.gone(leader, leader.lose))
    stage.await_leader(epoch)
    stage.contend(leader.name)
    stage.batches()


DRILLS = (
    Drill(
        "kill-sidecar",
        "kill -9 of the leading sidecar; its driver dies with it and a standby takes over",
        "kills",
        _kill_sidecar,
        Expected((1, 1), changed("session timeout + 1 s", "session_timeout")),
        peers=True,
        quick=True,
    ),
    Drill(
        "kill-driver",
        "kill -9 of the driver only; the sidecar gives the leadership back",
        "kills",
        lambda stage: _kill_below(stage, "driver", "driver"),
        Expected((1, 1), changed("the driver's end", more=NOTICED)),
        peers=True,
    ),
    Drill(
        "kill-jvm",
        "kill -9 of the Java virtual machine under the driver; the leadership follows it",
        "kills",
        lambda stage: _kill_below(stage, "jvm", "Java virtual machine"),
        Expected((1, 1), changed("the driver's end", more=NOTICED)),
        peers=True,
        quick=True,
    ),
    Drill(
        "lose-host",
        "the leader's host is lost: every packet to it vanishes, and nothing says so",
        "kills",
        _lose_host,
        Expected((1, 1), changed("session timeout + 1 s", "session_timeout")),
        needs=frozenset({Ability.HOST}),
        peers=True,
        quick=True,
    ),
)
