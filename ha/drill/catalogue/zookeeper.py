"""ZooKeeper fails, in all the ways it does; no leader moves, and no lookup fails."""

from ha.drill.drill import Act, Drill
from ha.drill.ground import Ability
from ha.drill.stage import Stage

OUTAGE = 60.0
PAUSE = 20.0
SLOW = 2.0
RESTART = 2.0


def _kill_leader(stage: Stage) -> None:
    server = stage.ground.zookeeper_leader()
    with stage.fault(f"{server}, which leads the ensemble, is killed"):
        stage.without([server], stage.durations["session_timeout"] * 2, stage.ground.kill)
    stage.batches()


def _lose_quorum(seconds: float) -> Act:
    def act(stage: Stage) -> None:
        lost = stage.ground.servers("zookeeper")[:2]
        with stage.fault(f"ZooKeeper has no quorum: {' and '.join(lost)} are stopped for {seconds:.0f} s"):
            stage.without(lost, seconds, stage.ground.stop)
        stage.batches()

    return act


def _restart_each(stage: Stage) -> None:
    with stage.fault("ZooKeeper's servers are restarted, one after the other"):
        for server in stage.ground.servers("zookeeper"):
            stage.without([server], RESTART, stage.ground.stop)
    stage.batches()


def _wipe(stage: Stage) -> None:
    with stage.fault("all of ZooKeeper's data are wiped"):
        stage.ground.wipe_zookeeper()
    stage.rest(stage.durations["session_timeout"] * 2)
    stage.batches()


def _pause_one(stage: Stage) -> None:
    server = stage.ground.zookeeper_leader()
    with stage.fault(f"{server}, which leads the ensemble, is paused for {PAUSE:.0f} s"):
        stage.ground.pause(server)
        stage.rest(PAUSE)
        stage.ground.resume(server)
        stage.ground.wait_ready(server)
    stage.batches()


def _slow(stage: Stage) -> None:
    servers = stage.ground.servers("zookeeper")
    with stage.fault(f"every answer of ZooKeeper takes {SLOW:.0f} s"):
        for server in servers:
            stage.ground.degrade(server, SLOW, 0.0)
        stage.rest(PAUSE)
        for server in servers:
            stage.ground.mend(server)
    stage.rest(stage.durations["session_timeout"])
    stage.batches()


DRILLS = (
    Drill("zookeeper-leader-killed", "the ensemble's leader is killed", "zookeeper", _kill_leader),
    Drill(
        "zookeeper-quorum-lost",
        "ZooKeeper has no quorum for 60 s",
        "zookeeper",
        _lose_quorum(OUTAGE),
        peers=True,
        quick=True,
    ),
    Drill("zookeeper-restarted", "ZooKeeper's servers are restarted one after the other", "zookeeper", _restart_each),
    Drill("zookeeper-wiped", "all of ZooKeeper's data are wiped", "zookeeper", _wipe, quick=True),
    Drill("zookeeper-paused", "the ensemble's leader is paused for 20 s, and woken", "zookeeper", _pause_one),
    Drill(
        "zookeeper-slow",
        "every answer of ZooKeeper takes 2 s",
        "zookeeper",
        _slow,
        needs=frozenset({Ability.NETWORK}),
    ),
)
