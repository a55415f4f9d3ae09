"""A rolling upgrade to another version of the record in ZooKeeper, and back."""

from ha.drill.drill import Drill, Expected
from ha.drill.guards import NEXT_VERSION
from ha.drill.stage import Stage

SHOWN = 5.0
"""Seconds for which readers of the old version meet the records of the new one."""


def _replace_leader(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch
    stage.gone(leader, leader.kill)
    stage.await_leader(epoch)
    stage.batches()
    stage.contend(leader.name)  # in this version, as a standby


def _roll(stage: Stage) -> None:
    new = stage.standby
    with stage.fault(f"{new.name} runs the next version, with another format of records"):
        stage.contend(new.name, NEXT_VERSION)
        stage.wait(f"{new.name} to contend", lambda: "contending" in stage.contenders[new.name].log())
        _replace_leader(stage)  # the next version takes over
        stage.rest(SHOWN)
        _replace_leader(stage)  # and back
    stage.batches()


DRILLS = (
    Drill(
        "rolling-upgrade",
        "a standby is upgraded to another version of the record format, leads, and is taken back",
        "upgrade",
        _roll,
        Expected((2, 2)),
        quick=True,
    ),
)
