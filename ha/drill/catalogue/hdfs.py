"""HDFS fails: NameNodes switch, pause, die and stay away; DataNodes and JournalNodes are lost."""

from ha.drill.drill import Drill, Expected, bound
from ha.drill.fixture import Fixture, Setup

PAUSE_S = 30.0
OUTAGE_S = 20.0
GONE_S = 40.0
NOTICE_S = 3.0
"""Until an operator, or a failover controller, has noticed that a NameNode is gone."""

ROUNDS = 3


def _other(fixture: Fixture, namenode: str) -> str:
    return next(each for each in fixture.environment.servers("namenode") if each != namenode)


def wake(fixture: Fixture, namenode: str) -> None:
    """Let a paused NameNode go on. If it slept through a write to its journal it ends itself; then replace it."""
    fixture.environment.resume(namenode)
    fixture.run_for(NOTICE_S)
    if not fixture.environment.active_namenode():
        other = _other(fixture, namenode)
        fixture.say(f"{namenode} has ended itself; {other} takes over.")
        fixture.environment.failover(other)


def _switch(fixture: Fixture) -> None:
    active = fixture.environment.active_namenode()
    other = _other(fixture, active)
    with fixture.fault(f"HDFS switches from {active} to {other}"):
        fixture.environment.failover(other)
    fixture.await_batches()


def kill_active(fixture: Fixture) -> None:
    """Kill the active NameNode; the other one takes over."""
    active = fixture.environment.active_namenode()
    other = _other(fixture, active)
    with fixture.fault(f"{active}, the active NameNode, is killed; {other} takes over"):
        fixture.environment.kill(active)
        fixture.run_for(NOTICE_S)
        fixture.environment.failover(other)
    fixture.start_servers([active])
    fixture.await_batches()


def _pause_active(fixture: Fixture) -> None:
    active = fixture.environment.active_namenode()
    with fixture.fault(f"{active}, the active NameNode, is paused for {PAUSE_S:.0f} s"):
        fixture.environment.pause(active)
        fixture.run_for(PAUSE_S)
        wake(fixture, active)
    fixture.await_batches()


def _gone(fixture: Fixture) -> None:
    epoch, long_ttl = fixture.epoch, fixture.durations["long_ttl"]
    with fixture.fault(f"all of HDFS is gone, for {GONE_S:.0f} s at a long ttl of {long_ttl:.0f} s"):
        namenodes = fixture.environment.servers("namenode")
        active = fixture.environment.active_namenode()
        fixture.without(namenodes, GONE_S, fixture.environment.kill)
        fixture.environment.failover(active)
    fixture.await_leader(epoch)
    fixture.await_batches()


def _datanodes_down(fixture: Fixture) -> None:
    servers = fixture.environment.servers("datanode")
    with fixture.fault(f"all DataNodes are down for {OUTAGE_S:.0f} s"):
        fixture.without(servers, OUTAGE_S, fixture.environment.kill)
    fixture.await_batches()


def _safe_mode(fixture: Fixture) -> None:
    epoch = fixture.epoch
    with fixture.fault(f"HDFS is in safe mode for {OUTAGE_S:.0f} s"):
        fixture.environment.safe_mode(on=True)
        fixture.run_for(OUTAGE_S)
        fixture.environment.safe_mode(on=False)
    fixture.await_leader(epoch)
    fixture.await_batches()


def _journals_lost(fixture: Fixture) -> None:
    lost = fixture.environment.servers("journalnode")[:2]
    active = fixture.environment.active_namenode()
    other = _other(fixture, active)
    with fixture.fault(f"the JournalNodes have no quorum for {OUTAGE_S:.0f} s; the active NameNode ends itself"):
        fixture.without(lost, OUTAGE_S, fixture.environment.kill)
        fixture.environment.failover(other)
    fixture.await_batches()


def _switches(fixture: Fixture) -> None:
    for number in range(ROUNDS):
        _switch(fixture)
        if number < ROUNDS - 1:
            kill_active(fixture)


DRILLS = (
    Drill("namenode-switched", "an orderly switch to the other NameNode", "hdfs", _switch),
    Drill(
        "namenode-killed",
        "the active NameNode is killed, and the other one takes over",
        "hdfs",
        kill_active,
        quick=True,
    ),
    Drill("namenode-paused", "the active NameNode is paused for 30 s", "hdfs", _pause_active),
    Drill(
        "hdfs-gone",
        "HDFS is gone for twice the long ttl; the driver stops, and a leader is elected when HDFS is back",
        "hdfs",
        _gone,
        # The leader stops itself, so ZooKeeper has no record; without HDFS no reader can tell what that means.
        Expected((1, 1), bound("the outage + long ttl + 1 s", "outage", "long_ttl"), blind=True),
        setup=Setup(settings={"long_ttl": 20.0}),
    ),
    Drill(
        "datanodes-down",
        "all DataNodes are down for 20 s; leases need none, so the leader stays, but Spark cannot write files",
        "hdfs",
        _datanodes_down,
        # A driver ends at the first file that it cannot write; the next contender may fail in the same way.
        Expected((0, 3)),
    ),
    Drill(
        "safe-mode",
        "HDFS refuses all writes for 20 s; Spark's driver ends, and nobody can claim the job before that is over",
        "hdfs",
        _safe_mode,
        Expected((1, 1), bound("the outage + long ttl + 1 s", "outage", "long_ttl")),
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
