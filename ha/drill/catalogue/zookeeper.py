"""ZooKeeper fails or lies: alone, where no leader moves and no lookup fails, or together with HDFS or the leader."""

from collections.abc import Callable

from ha.drill.catalogue.hdfs import pair, wake
from ha.drill.drill import STAYS, Expected, bound, drill
from ha.drill.environment import Ability, DrillError
from ha.drill.fixture import START_LIMIT_S, Fixture, Setup
from ha.drill.outcome import Check
from ha.drill.stranger import Account

NO_QUORUM_S = 60.0
PAUSE_S = 20.0
DELAY_S = 2.0
LIES_S = 40.0

BOTH_LOST_S = 15.0
BETWEEN_S = 5.0
SHORT_LEASE = Setup(settings={"long_ttl": 20.0})


@drill("zookeeper", baselines=True, quick=True)
def zookeeper_quorum_lost(fixture: Fixture) -> None:
    """ZooKeeper has no quorum for 60 s."""
    lost = fixture.cluster.names("zookeeper")[:2]
    with fixture.fault(f"ZooKeeper has no quorum: {' and '.join(lost)} are stopped for {NO_QUORUM_S:.0f} s"):
        fixture.without(lost, NO_QUORUM_S, fixture.cluster.stop)


@drill("zookeeper")
def zookeeper_restarted(fixture: Fixture) -> None:
    """ZooKeeper's servers are killed and started again, one after the other."""
    # Each one is away for longer than a session lasts; one of them leads the ensemble.
    with fixture.fault("ZooKeeper's servers are killed and started again, one after the other"):
        for server in fixture.cluster.names("zookeeper"):
            fixture.without([server], fixture.durations["session_timeout"] * 2, fixture.cluster.kill)


@drill("zookeeper")
def zookeeper_wiped(fixture: Fixture) -> None:
    """All of ZooKeeper's data are wiped."""
    with fixture.fault("all of ZooKeeper's data are wiped"):
        fixture.cluster.wipe_zookeeper()
    fixture.run_for(fixture.durations["session_timeout"] * 2)


@drill("zookeeper")
def zookeeper_paused(fixture: Fixture) -> None:
    """The ensemble's leader is paused for 20 s, and woken."""
    server = fixture.cluster.zookeeper_leader()
    with fixture.fault(f"{server}, which leads the ensemble, is paused for {PAUSE_S:.0f} s"):
        fixture.cluster.pause(server)
        fixture.run_for(PAUSE_S)
        fixture.cluster.resume(server)
        fixture.cluster.wait_ready(server)


@drill("zookeeper", STAYS, Ability.NETWORK)
def zookeeper_slow(fixture: Fixture) -> None:
    """Every answer of ZooKeeper takes 2 s."""
    servers = fixture.cluster.names("zookeeper")
    with fixture.fault(f"every answer of ZooKeeper takes {DELAY_S:.0f} s"):
        for server in servers:
            fixture.environment.degrade(server, DELAY_S, 0.0)
        fixture.run_for(PAUSE_S)
        for server in servers:
            fixture.environment.mend(server)
    fixture.run_for(fixture.durations["session_timeout"])


@drill("zookeeper")
def zookeeper_lies(fixture: Fixture) -> None:
    """A stranger deletes, forges and replays ZooKeeper's nodes for 40 s."""
    what = f"a stranger deletes, forges, replays and floods the job's nodes in ZooKeeper for {LIES_S:.0f} s"
    program = ["python", "-m", "ha.drill.stranger", fixture.job.name, "--seconds", str(LIES_S)]
    with fixture.fault(what):
        for name, variables in fixture.environment.strangers().items():
            said = fixture.let(name, program, LIES_S + START_LIMIT_S, variables)
            if fixture.environment.closed:
                fixture.checks.append(_kept_out(name, said))
    fixture.run_for(fixture.durations["session_timeout"])


def _kept_out(name: str, said: str) -> Check:
    try:
        found = Account.of(said)
    except ValueError as error:
        raise DrillError(f"{name} has not said what it could do: {error}") from error
    tried = f"{found.denied} were denied" if found.connected else "ZooKeeper let it in for none"
    return Check(f"{name} has no effect", found.harmless, f"{sum(found.done.values())} acts had an effect; {tried}")


_BOTH_LOST = Expected((1, 1), bound("the outage + long ttl + 1 s", "outage", "long_ttl"), blind=True)


@drill("both", _BOTH_LOST, setup=SHORT_LEASE)
def both_lost_zookeeper_first(fixture: Fixture) -> None:
    """Both stores are lost, and ZooKeeper comes back first."""
    _lose_both(fixture, "ZooKeeper")


@drill("both", _BOTH_LOST, setup=SHORT_LEASE)
def both_lost_hdfs_first(fixture: Fixture) -> None:
    """Both stores are lost, and HDFS comes back first."""
    _lose_both(fixture, "HDFS")


def _lose_both(fixture: Fixture, first: str) -> None:
    (active, other), zookeeper = pair(fixture), fixture.cluster.names("zookeeper")
    heal: dict[str, Callable[[], None]] = {
        "ZooKeeper": lambda: fixture.start_servers(zookeeper),
        "HDFS": lambda: wake(fixture, active, other),
    }
    with fixture.fault(f"both stores are out of reach for {BOTH_LOST_S:.0f} s; {first} comes back first"):
        fixture.cluster.pause(active)
        for server in zookeeper:
            fixture.cluster.kill(server)
        fixture.run_for(BOTH_LOST_S)
        heal.pop(first)()
        fixture.run_for(BETWEEN_S)
        heal.popitem()[1]()


@drill("both", Expected((1, 1), bound("long ttl + 1 s", "long_ttl")), setup=SHORT_LEASE, quick=True)
def zookeeper_and_leader(fixture: Fixture) -> None:
    """ZooKeeper and the leading sidecar are killed at the same instant."""
    leader, epoch = fixture.leader, fixture.epoch
    servers = fixture.cluster.names("zookeeper")
    with fixture.fault(f"ZooKeeper and the leading sidecar, {leader.name}, are killed at the same instant"):
        for server in servers:
            fixture.cluster.kill(server)
        fixture.lose(leader, leader.kill)
        fixture.await_leader(epoch)
        fixture.start_servers(servers)
