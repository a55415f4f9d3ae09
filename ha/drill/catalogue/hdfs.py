"""HDFS fails: NameNodes switch, pause, die and stay away; DataNodes and JournalNodes are lost."""

from ha.drill.drill import Expected, bound, drill
from ha.drill.environment import DrillError
from ha.drill.fixture import Fixture, Setup

PAUSE_S = 30.0
OUTAGE_S = 20.0
GONE_S = 40.0
NOTICE_S = 3.0  # until an operator, or a failover controller, has noticed that a NameNode is gone

ROUNDS = 3
_LATE = bound("the outage + long ttl + 1 s", "outage", "long_ttl")


def pair(fixture: Fixture) -> tuple[str, str]:
    """Return the active NameNode and the other one; raise if none is active."""
    active = fixture.cluster.active_namenode()
    if active is None:
        raise DrillError("No NameNode is active.")
    return active, next(each for each in fixture.cluster.names("namenode") if each != active)


def wake(fixture: Fixture, active: str, other: str) -> None:
    """Resume a paused NameNode. If it slept through a write to its journal it ends itself; then replace it."""
    fixture.cluster.resume(active)
    fixture.run_for(NOTICE_S)
    if not fixture.cluster.active_namenode():
        fixture.say(f"{active} has ended itself; {other} takes over.")
        fixture.cluster.failover(other)


@drill("hdfs", quick=True)
def namenode_killed(fixture: Fixture) -> None:
    """The active NameNode is killed, and the other one takes over."""
    active, other = pair(fixture)
    with fixture.fault(f"{active}, the active NameNode, is killed; {other} takes over"):
        fixture.cluster.kill(active)
        fixture.run_for(NOTICE_S)
        fixture.cluster.failover(other)
    fixture.start_servers([active])
    fixture.await_batches()


@drill("hdfs")
def namenode_paused(fixture: Fixture) -> None:
    """The active NameNode is paused for 30 s."""
    active, other = pair(fixture)
    with fixture.fault(f"{active}, the active NameNode, is paused for {PAUSE_S:.0f} s"):
        fixture.cluster.pause(active)
        fixture.run_for(PAUSE_S)
        wake(fixture, active, other)


# The leader stops itself, so ZooKeeper has no record; without HDFS no reader can tell what that means.
@drill("hdfs", Expected((1, 1), _LATE, blind=True), setup=Setup(settings={"long_ttl": 20.0}))
def hdfs_gone(fixture: Fixture) -> None:
    """HDFS is gone for twice the long ttl; the driver stops, and a leader is elected when HDFS is back."""
    active, other = pair(fixture)
    long_ttl = fixture.durations["long_ttl"]
    with fixture.fault(f"all of HDFS is gone, for {GONE_S:.0f} s at a long ttl of {long_ttl:.0f} s"):
        fixture.without([active, other], GONE_S, fixture.cluster.kill)
        fixture.cluster.failover(active)


# A driver ends at the first file that it cannot write; the next contender may fail in the same way.
@drill("hdfs", Expected((0, 3)))
def datanodes_down(fixture: Fixture) -> None:
    """All DataNodes are down for 20 s; leases need none, so the leader stays, but Spark cannot write files."""
    with fixture.fault(f"all DataNodes are down for {OUTAGE_S:.0f} s"):
        fixture.without(fixture.cluster.names("datanode"), OUTAGE_S, fixture.cluster.kill)


@drill("hdfs", Expected((1, 1), _LATE))
def safe_mode(fixture: Fixture) -> None:
    """HDFS refuses all writes for 20 s; Spark's driver ends, and no process can claim the job before that is over."""
    with fixture.fault(f"HDFS is in safe mode for {OUTAGE_S:.0f} s"):
        fixture.cluster.safe_mode(on=True)
        fixture.run_for(OUTAGE_S)
        fixture.cluster.safe_mode(on=False)


@drill("hdfs")
def journal_quorum_lost(fixture: Fixture) -> None:
    """The JournalNodes have no quorum for 20 s."""
    lost, (_, other) = fixture.cluster.names("journalnode")[:2], pair(fixture)
    with fixture.fault(f"the JournalNodes have no quorum for {OUTAGE_S:.0f} s; the active NameNode ends itself"):
        fixture.without(lost, OUTAGE_S, fixture.cluster.kill)
        fixture.cluster.failover(other)


@drill("hdfs")
def namenodes_switched_repeatedly(fixture: Fixture) -> None:
    """Orderly switches and kills in turn."""
    for number in range(ROUNDS):
        active, other = pair(fixture)
        with fixture.fault(f"HDFS switches from {active} to {other}"):
            fixture.cluster.failover(other)
        fixture.await_batches()
        if number < ROUNDS - 1:
            namenode_killed(fixture)
