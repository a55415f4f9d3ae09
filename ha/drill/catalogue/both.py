"""Both stores fail, or ZooKeeper and the leader at the same instant."""

from collections.abc import Callable

from ha.drill.catalogue.hdfs import wake
from ha.drill.drill import Act, Drill, Expected, changed
from ha.drill.stage import Stage

OUTAGE = 15.0
BETWEEN = 5.0
LONG_TTL = 20.0


def _both(first: str) -> Act:
    def act(stage: Stage) -> None:
        ground, epoch = stage.ground, stage.epoch
        active = ground.active_namenode()

        heal: dict[str, Callable[[], None]] = {
            "ZooKeeper": lambda: stage.start(ground.servers("zookeeper")),
            "HDFS": lambda: wake(stage, active),
        }
        with stage.fault(f"both stores are out of reach for {OUTAGE:.0f} s; {first} comes back first"):
            ground.pause(active)
            for server in ground.servers("zookeeper"):
                ground.kill(server)
            stage.rest(OUTAGE)
            heal.pop(first)()
            stage.rest(BETWEEN)
            heal.popitem()[1]()
        stage.await_leader(epoch)
        stage.batches()

    return act


def _zookeeper_and_leader(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch
    servers = stage.ground.servers("zookeeper")
    with stage.fault(f"ZooKeeper and the leading sidecar, {leader.name}, are killed at the same instant"):
        for server in servers:
            stage.ground.kill(server)
        stage.gone(leader, leader.kill)
        stage.await_leader(epoch)
        stage.start(servers)
    stage.contend(leader.name)
    stage.batches()


_SETTINGS = {"long_ttl": LONG_TTL}
_LATEST = changed("the outage + long ttl + 1 s", "outage", "long_ttl")

DRILLS = (
    Drill(
        "both-lost-zookeeper-first",
        "both stores are lost, and ZooKeeper comes back first",
        "both",
        _both("ZooKeeper"),
        Expected((1, 1), _LATEST, blind=True),
        settings=_SETTINGS,
    ),
    Drill(
        "both-lost-hdfs-first",
        "both stores are lost, and HDFS comes back first",
        "both",
        _both("HDFS"),
        Expected((1, 1), _LATEST, blind=True),
        settings=_SETTINGS,
    ),
    Drill(
        "zookeeper-and-leader",
        "ZooKeeper and the leading sidecar are killed at the same instant",
        "both",
        _zookeeper_and_leader,
        Expected((1, 1), changed("long ttl + 1 s", "long_ttl")),
        settings=_SETTINGS,
        quick=True,
    ),
)
