"""ZooKeeper fails or lies: alone, where no leader moves and no lookup fails, or together with HDFS or the leader."""

from collections.abc import Callable

from ha.drill.catalogue.hdfs import wake
from ha.drill.drill import Action, Drill, Expected, bound
from ha.drill.environment import Ability, DrillError
from ha.drill.fixture import START_LIMIT_S, Fixture, Setup
from ha.drill.outcome import Check
from ha.drill.stranger import Account

NO_QUORUM_S = 60.0
PAUSE_S = 20.0
DELAY_S = 2.0
RESTART_S = 2.0
LIES_S = 40.0


def _kill_leader(fixture: Fixture) -> None:
    server = fixture.environment.zookeeper_leader()
    with fixture.fault(f"{server}, which leads the ensemble, is killed"):
        fixture.without([server], fixture.durations["session_timeout"] * 2, fixture.environment.kill)
    fixture.await_batches()


def _lose_quorum(seconds: float) -> Action:
    def action(fixture: Fixture) -> None:
        lost = fixture.environment.servers("zookeeper")[:2]
        with fixture.fault(f"ZooKeeper has no quorum: {' and '.join(lost)} are stopped for {seconds:.0f} s"):
            fixture.without(lost, seconds, fixture.environment.stop)
        fixture.await_batches()

    return action


def _restart_each(fixture: Fixture) -> None:
    with fixture.fault("ZooKeeper's servers are restarted, one after the other"):
        for server in fixture.environment.servers("zookeeper"):
            fixture.without([server], RESTART_S, fixture.environment.stop)
    fixture.await_batches()


def _wipe(fixture: Fixture) -> None:
    with fixture.fault("all of ZooKeeper's data are wiped"):
        fixture.environment.wipe_zookeeper()
    fixture.run_for(fixture.durations["session_timeout"] * 2)
    fixture.await_batches()


def _pause_one(fixture: Fixture) -> None:
    server = fixture.environment.zookeeper_leader()
    with fixture.fault(f"{server}, which leads the ensemble, is paused for {PAUSE_S:.0f} s"):
        fixture.environment.pause(server)
        fixture.run_for(PAUSE_S)
        fixture.environment.resume(server)
        fixture.environment.wait_ready(server)
    fixture.await_batches()


def _slow(fixture: Fixture) -> None:
    servers = fixture.environment.servers("zookeeper")
    with fixture.fault(f"every answer of ZooKeeper takes {DELAY_S:.0f} s"):
        for server in servers:
            fixture.environment.degrade(server, DELAY_S, 0.0)
        fixture.run_for(PAUSE_S)
        for server in servers:
            fixture.environment.mend(server)
    fixture.run_for(fixture.durations["session_timeout"])
    fixture.await_batches()


def _lie(fixture: Fixture) -> None:
    what = f"a stranger deletes, forges, replays and floods the job's nodes in ZooKeeper for {LIES_S:.0f} s"
    program = ["python", "-m", "ha.drill.stranger", fixture.job.name, "--seconds", str(LIES_S)]
    with fixture.fault(what):
        for name, variables in fixture.environment.strangers().items():
            said = fixture.let(name, program, LIES_S + START_LIMIT_S, variables)
            if fixture.environment.closed:
                fixture.checks.append(_kept_out(name, said))
    fixture.run_for(fixture.durations["session_timeout"])
    fixture.await_batches()


def _kept_out(name: str, said: str) -> Check:
    try:
        found = Account.of(said)
    except ValueError as error:
        raise DrillError(f"{name} has not said what it could do: {error}") from error
    tried = f"{found.denied} were denied" if found.connected else "ZooKeeper let it in for none"
    return Check(f"{name} has no effect", found.harmless, f"{sum(found.done.values())} acts had an effect; {tried}")


BOTH_LOST_S = 15.0
BETWEEN_S = 5.0
LONG_TTL_S = 20.0


def _both(first: str) -> Action:
    def action(fixture: Fixture) -> None:
        environment, epoch = fixture.environment, fixture.epoch
        active = environment.active_namenode()

        heal: dict[str, Callable[[], None]] = {
            "ZooKeeper": lambda: fixture.start_servers(environment.servers("zookeeper")),
            "HDFS": lambda: wake(fixture, active),
        }
        with fixture.fault(f"both stores are out of reach for {BOTH_LOST_S:.0f} s; {first} comes back first"):
            environment.pause(active)
            for server in environment.servers("zookeeper"):
                environment.kill(server)
            fixture.run_for(BOTH_LOST_S)
            heal.pop(first)()
            fixture.run_for(BETWEEN_S)
            heal.popitem()[1]()
        fixture.await_leader(epoch)
        fixture.await_batches()

    return action


def _zookeeper_and_leader(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    servers = fixture.environment.servers("zookeeper")
    with fixture.fault(f"ZooKeeper and the leading sidecar, {leader.name}, are killed at the same instant"):
        for server in servers:
            fixture.environment.kill(server)
        fixture.lose(leader, leader.kill)
        fixture.await_leader(epoch)
        fixture.start_servers(servers)
    fixture.contend(leader.name)
    fixture.await_batches()


_SETTINGS = {"long_ttl": LONG_TTL_S}
_LATEST = bound("the outage + long ttl + 1 s", "outage", "long_ttl")

DRILLS = (
    Drill("zookeeper-leader-killed", "the ensemble's leader is killed", "zookeeper", _kill_leader),
    Drill(
        "zookeeper-quorum-lost",
        "ZooKeeper has no quorum for 60 s",
        "zookeeper",
        _lose_quorum(NO_QUORUM_S),
        baselines=True,
        quick=True,
    ),
    Drill("zookeeper-restarted", "ZooKeeper's servers are restarted one after the other", "zookeeper", _restart_each),
    Drill("zookeeper-wiped", "all of ZooKeeper's data are wiped", "zookeeper", _wipe, quick=True),
    Drill("zookeeper-lies", "a stranger deletes, forges and replays ZooKeeper's nodes for 40 s", "zookeeper", _lie),
    Drill("zookeeper-paused", "the ensemble's leader is paused for 20 s, and woken", "zookeeper", _pause_one),
    Drill(
        "zookeeper-slow",
        "every answer of ZooKeeper takes 2 s",
        "zookeeper",
        _slow,
        needs=frozenset({Ability.NETWORK}),
    ),
    Drill(
        "both-lost-zookeeper-first",
        "both stores are lost, and ZooKeeper comes back first",
        "both",
        _both("ZooKeeper"),
        Expected((1, 1), _LATEST, blind=True),
        setup=Setup(settings=_SETTINGS),
    ),
    Drill(
        "both-lost-hdfs-first",
        "both stores are lost, and HDFS comes back first",
        "both",
        _both("HDFS"),
        Expected((1, 1), _LATEST, blind=True),
        setup=Setup(settings=_SETTINGS),
    ),
    Drill(
        "zookeeper-and-leader",
        "ZooKeeper and the leading sidecar are killed at the same instant",
        "both",
        _zookeeper_and_leader,
        Expected((1, 1), bound("long ttl + 1 s", "long_ttl")),
        setup=Setup(settings=_SETTINGS),
        quick=True,
    ),
)
