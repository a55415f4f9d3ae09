"""Networks fail: they are cut, one way or both ways, or lose and delay packets."""

from collections.abc import Callable, Sequence
from typing import Any

from ha.drill.drill import STAYS, Action, Expected, bound, drill
from ha.drill.environment import Ability, Side
from ha.drill.fixture import READERS, Fixture, Setup

CUT_S = 20.0  # more than three session timeouts

LOSS = 0.2
DELAY_S = 0.3

_ZOOKEEPER = ("zookeeper",)
_HDFS = ("namenode", "datanode", "journalnode")
_LEASE_ENDS = Expected((1, 1), bound("long ttl + session timeout + 1 s", "long_ttl", "session_timeout"))
_SESSION_ENDS = Expected((1, 1), bound("two session timeouts + 1 s", "session_timeout", "session_timeout"))


def _drill(
    expected: Expected = STAYS, settings: dict[str, float] | None = None, **more: Any
) -> Callable[[Action], Action]:
    return drill("network", expected, Ability.NETWORK, setup=Setup(settings=settings or {}), **more)


def _cut(fixture: Fixture, who: Sequence[str], others: Sequence[str], side: Side = "both", after: int = 0) -> None:
    """Cut members off from others for a while, and until there is a leader of a higher epoch than ``after``."""
    for each in who:
        fixture.environment.cut(each, others, side)
    if after:
        fixture.await_leader(after)
    fixture.run_for(CUT_S)
    for each in who:
        fixture.environment.mend(each)


def _cut_leader(fixture: Fixture, kinds: Sequence[str], called: str, side: Side = "both", *, moves: bool) -> None:
    name, epoch = fixture.leader.name, fixture.epoch
    servers = [server for kind in kinds for server in fixture.cluster.names(kind)]
    with fixture.fault(f"{name} is cut off from {called}"):
        _cut(fixture, [name], servers, side, epoch if moves else 0)


@_drill(baselines=True, quick=True)
def cut_leader_zookeeper(fixture: Fixture) -> None:
    """The leader is cut off from ZooKeeper; it leads on through HDFS."""
    _cut_leader(fixture, _ZOOKEEPER, "ZooKeeper", moves=False)


@_drill(_LEASE_ENDS, {"long_ttl": 20.0})
def cut_leader_hdfs(fixture: Fixture) -> None:
    """The leader is cut off from HDFS, longer than its lease lasts; its driver stops and a standby takes over."""
    _cut_leader(fixture, _HDFS, "HDFS", moves=True)


@_drill(_SESSION_ENDS, quick=True)
def cut_leader_both(fixture: Fixture) -> None:
    """The leader is cut off from both stores, and answers its standby; it stops itself, and the standby takes over."""
    _cut_leader(fixture, _ZOOKEEPER + _HDFS, "both stores", moves=True)


@_drill()
def cut_leader_standby(fixture: Fixture) -> None:
    """The leader is cut off from its standby; neither notices."""
    leader, standby = fixture.leader.name, fixture.standby.name
    with fixture.fault(f"{leader} is cut off from {standby}"):
        _cut(fixture, [leader], [standby])


@_drill()
def cut_readers_zookeeper(fixture: Fixture) -> None:
    """All readers are cut off from ZooKeeper; HDFS answers them."""
    with fixture.fault("all readers are cut off from ZooKeeper"):
        _cut(fixture, READERS, fixture.cluster.names("zookeeper"))


@_drill()
def deaf_leader_zookeeper(fixture: Fixture) -> None:
    """The leader hears nothing from ZooKeeper, which hears it."""
    _cut_leader(fixture, _ZOOKEEPER, "what ZooKeeper says", "in", moves=False)


@_drill(quick=True)
def mute_leader_zookeeper(fixture: Fixture) -> None:
    """ZooKeeper hears nothing from the leader, which hears it."""
    _cut_leader(fixture, _ZOOKEEPER, "ZooKeeper's ears", "out", moves=False)


@_drill(_LEASE_ENDS, {"long_ttl": 20.0})
def deaf_leader_hdfs(fixture: Fixture) -> None:
    """The leader hears nothing from HDFS, which goes on executing its requests."""
    _cut_leader(fixture, _HDFS, "what HDFS says", "in", moves=True)


# A new connection takes four round trips, and each may be lost. A session timeout of 6 s gives a call timeout of 0.9 s,
# which is never enough for that.
@_drill(settings={"session_timeout": 20.0, "short_ttl": 20.0, "call_timeout": 4.0})
def lossy_leader(fixture: Fixture) -> None:
    """20 % of the leader's packets are lost and the others 300 ms late, with durations for such a network."""
    name = fixture.leader.name
    with fixture.fault(f"{name} loses {LOSS:.0%} of what it sends, and the rest is {DELAY_S * 1000:.0f} ms late"):
        fixture.environment.degrade(name, DELAY_S, LOSS)
        fixture.run_for(CUT_S)
        fixture.environment.mend(name)
