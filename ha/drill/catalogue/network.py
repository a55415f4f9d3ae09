"""Networks fail: they are cut, one way or both ways, or lose and delay packets."""

from collections.abc import Callable, Sequence
from typing import Any

from ha.drill.drill import Action, Expected, bound, drill
from ha.drill.environment import Ability, Side
from ha.drill.fixture import READERS, Fixture, Setup

CUT_S = 20.0  # more than three session timeouts

LOSS = 0.2
DELAY_S = 0.3

_ZOOKEEPER = ("zookeeper",)
_HDFS = ("namenode", "datanode", "journalnode")
_STAYS = Expected()
_LEASE_ENDS = Expected((1, 1), bound("long ttl + session timeout + 1 s", "long_ttl", "session_timeout"))
_SESSION_ENDS = Expected((1, 1), bound("two session timeouts + 1 s", "session_timeout", "session_timeout"))


def _drill(
    name: str, title: str, expected: Expected = _STAYS, settings: dict[str, float] | None = None, **more: Any
) -> Callable[[Action], Action]:
    return drill(name, title, "network", expected, Ability.NETWORK, setup=Setup(settings=settings or {}), **more)


def _cut(fixture: Fixture, who: Sequence[str], others: Sequence[str], side: Side = "both", after: int = 0) -> None:
    """Cut members off from others for a while, and until there is a leader of a higher epoch than ``after``."""
    for each in who:
        fixture.environment.cut(each, others, side)
    if after:
        fixture.await_leader(after)
    fixture.run_for(CUT_S)
    for each in who:
        fixture.environment.mend(each)


def _leader_cut(kinds: Sequence[str], called: str, side: Side = "both", *, moves: bool = False) -> Action:
    def action(fixture: Fixture) -> None:
        name, epoch = fixture.leader.name, fixture.epoch
        servers = [server for kind in kinds for server in fixture.cluster.names(kind)]
        with fixture.fault(f"{name} is cut off from {called}"):
            _cut(fixture, [name], servers, side, epoch if moves else 0)

    return action


_drill(
    "cut-leader-zookeeper", "the leader is cut off from ZooKeeper; it leads on through HDFS", baselines=True, quick=True
)(_leader_cut(_ZOOKEEPER, "ZooKeeper"))

_drill(
    "cut-leader-hdfs",
    "the leader is cut off from HDFS, longer than its lease lasts; its driver stops and a standby takes over",
    _LEASE_ENDS,
    {"long_ttl": 20.0},
)(_leader_cut(_HDFS, "HDFS", moves=True))

_drill(
    "cut-leader-both",
    "the leader is cut off from both stores, and answers its standby; it stops itself, and the standby takes over",
    _SESSION_ENDS,
    quick=True,
)(_leader_cut(_ZOOKEEPER + _HDFS, "both stores", moves=True))


@_drill("cut-leader-standby", "the leader is cut off from its standby; neither notices")
def _cut_from_standby(fixture: Fixture) -> None:
    leader, standby = fixture.leader.name, fixture.standby.name
    with fixture.fault(f"{leader} is cut off from {standby}"):
        _cut(fixture, [leader], [standby])


@_drill("cut-readers-zookeeper", "all readers are cut off from ZooKeeper; HDFS answers them")
def _cut_readers(fixture: Fixture) -> None:
    with fixture.fault("all readers are cut off from ZooKeeper"):
        _cut(fixture, READERS, fixture.cluster.names("zookeeper"))


_drill("deaf-leader-zookeeper", "the leader hears nothing from ZooKeeper, which hears it")(
    _leader_cut(_ZOOKEEPER, "what ZooKeeper says", "in")
)
_drill("mute-leader-zookeeper", "ZooKeeper hears nothing from the leader, which hears it", quick=True)(
    _leader_cut(_ZOOKEEPER, "ZooKeeper's ears", "out")
)
_drill(
    "deaf-leader-hdfs",
    "the leader hears nothing from HDFS, which goes on executing its requests",
    _LEASE_ENDS,
    {"long_ttl": 20.0},
)(_leader_cut(_HDFS, "what HDFS says", "in", moves=True))


@_drill(
    "lossy-leader",
    "20 % of the leader's packets are lost and the others 300 ms late, with durations for such a network",
    # A new connection takes four round trips, and each may be lost. A session timeout of 6 s gives a call timeout
    # of 0.9 s, which is never enough for that.
    settings={"session_timeout": 20.0, "short_ttl": 20.0, "call_timeout": 4.0},
)
def _degraded(fixture: Fixture) -> None:
    name = fixture.leader.name
    with fixture.fault(f"{name} loses {LOSS:.0%} of what it sends, and the rest is {DELAY_S * 1000:.0f} ms late"):
        fixture.environment.degrade(name, DELAY_S, LOSS)
        fixture.run_for(CUT_S)
        fixture.environment.mend(name)
