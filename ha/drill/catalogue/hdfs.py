"""HDFS fails: NameNodes switch, pause, die and stay away; DataNodes and JournalNodes are lost."""

from ha.drill.drill import Drill, Expected, changed
from ha.drill.stage import Stage

PAUSE = 30.0
OUTAGE = 20.0
GONE = 40.0
NOTICED = 3.0
"""Seconds until somebody, or a fail-over controller, has noticed that a NameNode is gone."""

ROUNDS = 3


def _other(stage: Stage, namenode: str) -> str:
    return next(each for each in stage.ground.servers("namenode") if each != namenode)


def wake(stage: Stage, namenode: str) -> None:
    """Let a paused NameNode go on; one that slept through a write to its journal ends itself, and is replaced."""
    stage.ground.resume(namenode)
    stage.rest(NOTICED)
    if not stage.ground.active_namenode():
        other = _other(stage, namenode)
        stage.say(f"{namenode} has ended itself; {other} takes over.")
        stage.ground.failover(other)


def _switch(stage: Stage) -> None:
    active = stage.ground.active_namenode()
    other = _other(stage, active)
    with stage.fault(f"HDFS switches from {active} to {other}"):
        stage.ground.failover(other)
    stage.batches()


def _kill_active(stage: Stage) -> None:
    active = stage.ground.active_namenode()
    other = _other(stage, active)
    with stage.fault(f"{active}, the active NameNode, is killed; {other} takes over"):
        stage.ground.kill(active)
        stage.rest(NOTICED)
        stage.ground.failover(other)
    stage.start([active])
    stage.batches()


def _pause_active(stage: Stage) -> None:
    active = stage.ground.active_namenode()
    with stage.fault(f"{active}, the active NameNode, is paused for {PAUSE:.0f} s"):
        stage.ground.pause(active)
        stage.rest(PAUSE)
        wake(stage, active)
    stage.batches()


def _gone(stage: Stage) -> None:
    epoch, long_ttl = stage.epoch, stage.durations["long_ttl"]
    with stage.fault(f"all of HDFS is gone, for {GONE:.0f} s at a long ttl of {long_ttl:.0f} s"):
        namenodes = stage.ground.servers("namenode")
        active = stage.ground.active_namenode()
        stage.without(namenodes, GONE, stage.ground.kill)
        stage.ground.failover(active)
    stage.await_leader(epoch)
    stage.batches()


def _datanodes_down(stage: Stage) -> None:
    servers = stage.ground.servers("datanode")
    with stage.fault(f"all DataNodes are down for {OUTAGE:.0f} s"):
        stage.without(servers, OUTAGE, stage.ground.kill)
    stage.batches()


def _safe_mode(stage: Stage) -> None:
    epoch = stage.epoch
    with stage.fault(f"HDFS is in safe mode for {OUTAGE:.0f} s"):
        stage.ground.safe_mode(on=True)
        stage.rest(OUTAGE)
        stage.ground.safe_mode(on=False)
    stage.await_leader(epoch)
    stage.batches()


def _journals_lost(stage: Stage) -> None:
    lost = stage.ground.servers("journalnode")[:2]
    active = stage.ground.active_namenode()
    other = _other(stage, active)
    with stage.fault(f"the JournalNodes have no quorum for {OUTAGE:.0f} s; the active NameNode ends itself"):
        stage.without(lost, OUTAGE, stage.ground.kill)
        stage.ground.failover(other)
    stage.batches()


def _switches(stage: Stage) -> None:
    for number in range(ROUNDS):
        _switch(stage)
        if number < ROUNDS - 1:
            _kill_active(stage)


DRILLS = (
    Drill("namenode-switched", "an orderly switch to the other NameNode", "hdfs", _switch),
    Drill(
        "namenode-killed",
        "the active NameNode is killed, and the other one takes over",
        "hdfs",
        _kill_active,
        quick=True,
    ),
    Drill("namenode-paused", "the active NameNode is paused for 30 s", "hdfs", _pause_active),
    Drill(
        "hdfs-gone",
        "HDFS is gone for twice the long ttl; the driver stops, and there is a leader again when HDFS is back",
        "hdfs",
        _gone,
        # Once the leader has stopped itself ZooKeeper has no record, and without HDFS nobody can say what that means.
        Expected((1, 1), changed("the outage + long ttl + 1 s", "outage", "long_ttl"), blind=True),
        settings={"long_ttl": 20.0},
    ),
    Drill(
        "datanodes-down",
        "all DataNodes are down for 20 s; names can be written, so the leader leads on, but Spark's files cannot",
        "hdfs",
        _datanodes_down,
        # A driver ends with the first file that it cannot write, and another contender tries; so may the next one.
        Expected((0, 3)),
    ),
    Drill(
        "safe-mode",
        "HDFS refuses all writes for 20 s; Spark's driver ends, and nobody can claim the job before that is over",
        "hdfs",
        _safe_mode,
        Expected((1, 1), changed("the outage + long ttl + 1 s", "outage", "long_ttl")),
    ),
    Drill("journal-quorum-lost", "the JournalNodes have no quorum for 20 s", "hdfs", _journals_lost),
    Drill(
        "namenodes-switched-repeatedly",
        "orderly switches and kills in turn, compared with a quiet cluster",
        "hdfs",
        _switches,
        compared=True,
    ),
)
