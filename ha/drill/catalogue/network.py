"""Networks fail: they are cut, one way or both ways, or lose and delay packets."""

from collections.abc import Callable, Sequence

from ha.drill.drill import Action, Drill, Expected, bound
from ha.drill.environment import Ability, Side
from ha.drill.fixture import READERS, Fixture, Setup

CUT_S = 20.0
"""More than three session timeouts."""

LOSS = 0.2
DELAY_S = 0.3

_HDFS = ("namenode", "datanode", "journalnode")
_NETWORK = frozenset({Ability.NETWORK})


def _servers(fixture: Fixture, kinds: Sequence[str]) -> list[str]:
    return [server for kind in kinds for server in fixture.environment.servers(kind)]


def _leader_cut(kinds: Sequence[str], called: str, side: Side = "both", *, moves: bool = False) -> Action:
    def action(fixture: Fixture) -> None:
        leader, epoch = fixture.leader, fixture.epoch
        with fixture.fault(f"{leader.name} is cut off from {called}"):
            fixture.environment.cut(leader.name, _servers(fixture, kinds), side)
            if moves:
                fixture.await_leader(epoch)
            fixture.run_for(CUT_S)
            fixture.environment.mend(leader.name)
        fixture.await_batches()

    return action


def _cut_from_standby(fixture: Fixture) -> None:
    leader = fixture.leader
    with fixture.fault(f"{leader.name} is cut off from {fixture.standby.name}"):
        fixture.environment.cut(leader.name, [fixture.standby.name])
        fixture.run_for(CUT_S)
        fixture.environment.mend(leader.name)
    fixture.await_batches()


def _cut_readers(fixture: Fixture) -> None:
    with fixture.fault("all readers are cut off from ZooKeeper"):
        for reader in READERS:
            fixture.environment.cut(reader, fixture.environment.servers("zookeeper"))
        fixture.run_for(CUT_S)
        for reader in READERS:
            fixture.environment.mend(reader)
    fixture.await_batches()


def _degraded(fixture: Fixture) -> None:
    leader = fixture.leader
    with fixture.fault(
        f"{leader.name} loses {LOSS:.0%} of what it sends, and the rest is {DELAY_S * 1000:.0f} ms late"
    ):
        fixture.environment.degrade(leader.name, DELAY_S, LOSS)
        fixture.run_for(CUT_S)
        fixture.environment.mend(leader.name)
    fixture.await_batches()


def _drill(
    name: str,
    title: str,
    action: Callable[[Fixture], None],
    expected: Expected | None = None,
    *,
    baselines: bool = False,
    quick: bool = False,
    **settings: float,
) -> Drill:
    return Drill(
        name,
        title,
        "network",
        action,
        expected or Expected(),
        needs=_NETWORK,
        setup=Setup(settings=settings),
        baselines=baselines,
        quick=quick,
    )


DRILLS = (
    _drill(
        "cut-leader-zookeeper",
        "the leader is cut off from ZooKeeper; it leads on through HDFS",
        _leader_cut(["zookeeper"], "ZooKeeper"),
        baselines=True,
        quick=True,
    ),
    _drill(
        "cut-leader-hdfs",
        "the leader is cut off from HDFS, longer than its lease lasts; its driver stops and a standby takes over",
        _leader_cut(_HDFS, "HDFS", moves=True),
        Expected((1, 1), bound("long ttl + session timeout + 1 s", "long_ttl", "session_timeout")),
        long_ttl=20.0,
    ),
    _drill(
        "cut-leader-both",
        "the leader is cut off from both stores, and answers its standby; it stops itself, and the standby takes over",
        _leader_cut(["zookeeper", *_HDFS], "both stores", moves=True),
        Expected((1, 1), bound("two session timeouts + 1 s", "session_timeout", "session_timeout")),
        quick=True,
    ),
    _drill("cut-leader-standby", "the leader is cut off from its standby; neither notices", _cut_from_standby),
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
        "the leader hears nothing from HDFS, which goes on executing its requests",
        _leader_cut(_HDFS, "what HDFS says", "in", moves=True),
        Expected((1, 1), bound("long ttl + session timeout + 1 s", "long_ttl", "session_timeout")),
        long_ttl=20.0,
    ),
    _drill(
        "lossy-leader",
        "20 % of the leader's packets are lost and the others 300 ms late, with durations for such a network",
        _degraded,
        # A new connection takes four round trips, each of which may be lost. The call timeout that a session timeout of
        # 6 s gives, 0.9 s, is never enough for that.
        session_timeout=20.0,
        short_ttl=20.0,
        call_timeout=4.0,
    ),
)
