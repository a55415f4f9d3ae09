"""Networks are cut, one way or both ways, or lose and delay what they carry."""

from collections.abc import Callable, Sequence

from ha.drill.drill import Act, Drill, Expected, changed
from ha.drill.ground import Ability, Side
from ha.drill.stage import READERS, Stage

CUT = 20.0
"""Seconds; more than three session timeouts."""

LOSS = 0.2
DELAY = 0.3

_HDFS = ("namenode", "datanode", "journalnode")
_NETWORK = frozenset({Ability.NETWORK})


def _servers(stage: Stage, kinds: Sequence[str]) -> list[str]:
    return [server for kind in kinds for server in stage.ground.servers(kind)]


def _leader_cut(kinds: Sequence[str], called: str, side: Side = "both", *, moves: bool = False) -> Act:
    def act(stage: Stage) -> None:
        leader, epoch = stage.leader, stage.epoch
        with stage.fault(f"{leader.name} is cut off from {called}"):
            stage.ground.cut(leader.name, _servers(stage, kinds), side)
            if moves:
                stage.await_leader(epoch)
            stage.rest(CUT)
            stage.ground.mend(leader.name)
        stage.batches()

    return act


def _cut_from_standby(stage: Stage) -> None:
    leader = stage.leader
    with stage.fault(f"{leader.name} is cut off from {stage.standby.name}"):
        stage.ground.cut(leader.name, [stage.standby.name])
        stage.rest(CUT)
        stage.ground.mend(leader.name)
    stage.batches()


def _cut_readers(stage: Stage) -> None:
    with stage.fault("all readers are cut off from ZooKeeper"):
        for reader in READERS:
            stage.ground.cut(reader, stage.ground.servers("zookeeper"))
        stage.rest(CUT)
        for reader in READERS:
            stage.ground.mend(reader)
    stage.batches()


def _degraded(stage: Stage) -> None:
    leader = stage.leader
    with stage.fault(f"{leader.name} loses {LOSS:.0%} of what it sends, and the rest is {DELAY * 1000:.0f} ms late"):
        stage.ground.degrade(leader.name, DELAY, LOSS)
        stage.rest(CUT)
        stage.ground.mend(leader.name)
    stage.batches()


def _drill(
    name: str,
    title: str,
    act: Callable[[Stage], None],
    expected: Expected | None = None,
    *,
    peers: bool = False,
    quick: bool = False,
    **settings: float,
) -> Drill:
    return Drill(
        name,
        title,
        "network",
        act,
        expected or Expected(),
        needs=_NETWORK,
        settings=settings,
        peers=peers,
        quick=quick,
    )


DRILLS = (
    _drill(
        "cut-leader-zookeeper",
        "the leader is cut off from ZooKeeper; it leads on through HDFS",
        _leader_cut(["zookeeper"], "ZooKeeper"),
        peers=True,
        quick=True,
    ),
    _drill(
        "cut-leader-hdfs",
        "the leader is cut off from HDFS, longer than its lease lasts; its driver stops and a standby takes over",
        _leader_cut(_HDFS, "HDFS", moves=True),
        Expected((1, 1), changed("long ttl + session timeout + 1 s", "long_ttl", "session_timeout")),
        long_ttl=20.0,
    ),
    _drill(
        "cut-leader-both",
        "the leader is cut off from both stores; it stops itself, and a standby takes over",
        _leader_cut(["zookeeper", *_HDFS], "both stores", moves=True),
        Expected((1, 1), changed("session timeout + 1 s", "session_timeout")),
        quick=True,
    ),
    _drill("cut-leader-standby", "the leader is cut off from its standby; both notice nothing", _cut_from_standby),
    _drill(
        "cut-readers-zookeeper",
        "all readers are cut off from ZooKeeper; HDFS answers them",
        _cut_readers,
        quick=True,
    ),
    _drill(
        "deaf-leader-zookeeper",
        "the leader hears nothing from ZooKeeper, which hears it",
        _leader_cut(["zookeeper"], "what ZooKeeper says", "in"),
    ),
    _drill(
        "mute-leader-zookeeper",
        "ZooKeeper hears nothing from the leader, which hears it",
        _leader_cut(["zookeeper"], "ZooKeeper's ears", "out"),
        quick=True,
    ),
    _drill(
        "deaf-leader-hdfs",
        "the leader hears nothing from HDFS, which goes on executing what it sends",
        _leader_cut(_HDFS, "what HDFS says", "in", moves=True),
        Expected((1, 1), changed("long ttl + session timeout + 1 s", "long_ttl", "session_timeout")),
        long_ttl=20.0,
    ),
    _drill(
        "lossy-leader",
        "20 % of the leader's packets are lost and the others 300 ms late, with durations for such a network",
        _degraded,
        # A new connection takes four round trips, and each may be lost: 0.9 s for a call, as derived from a session
        # timeout of 6 s, is never enough for one.
        session_timeout=20.0,
        short_ttl=20.0,
        call_timeout=4.0,
    ),
)
