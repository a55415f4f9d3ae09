"""The job fails while its processes live, or at each start: drivers hang, and a bad version is deployed."""

from ha.drill.drill import Expected, bound, drill
from ha.drill.fixture import Fixture, Setup
from ha.drill.ha_provider import HYBRID, DrillJob

KILLED_S = 5.0  # until a sidecar has kept the stacks of a driver that hangs, and killed it

BAD_VERSION_S = 20.0
FAILURES = 3  # grants of a bad version in that time, at least; each is followed by a longer pause than the one before


_HEARTBEATS_END = Expected((1, 1), bound("heartbeat timeout + 5 s", "heartbeat_timeout", more=KILLED_S))
_HEARTBEATS = Setup(settings={"heartbeat_timeout": 8.0})


def _freeze(fixture: Fixture, kind: str, called: str) -> None:
    leader = fixture.leader
    what = f"the {called} of {leader.name} is frozen for good; its sidecar and its lease live on"
    fixture.fault_at_once(what, lambda: fixture.strike(leader, "freeze", kind))


@drill("hangs", _HEARTBEATS_END, setup=_HEARTBEATS)
def hang_driver(fixture: Fixture) -> None:
    """The Python of the driver is frozen for good; its sidecar notices, and gives the leadership back."""
    _freeze(fixture, "driver", "Python of the driver")


@drill("hangs", _HEARTBEATS_END, setup=_HEARTBEATS)
def hang_jvm(fixture: Fixture) -> None:
    """The Java virtual machine under the driver is frozen for good; its sidecar notices that nothing answers."""
    _freeze(fixture, "jvm", "Java virtual machine under the driver")


def _bad_version(job: DrillJob, name: str) -> list[str]:
    return [*HYBRID.contend(job, name), "--no-such-option"]


# One grant for each failure, at growing distances, and one of the good version.
@drill("crashes", Expected((FAILURES + 1, FAILURES + 6)))
def crash_loop(fixture: Fixture) -> None:
    """A version whose driver fails at each start is deployed, and replaced by the good one."""
    epoch = fixture.epoch
    with fixture.fault(
        f"a version is deployed whose driver ends with an error at its start, for {BAD_VERSION_S:.0f} s"
    ):
        fixture.contend_all(_bad_version)
        fixture.wait_for("some failures", lambda: fixture.epoch >= epoch + FAILURES)
        fixture.run_for(BAD_VERSION_S)
        failed = fixture.epoch
        fixture.contend_all()
    fixture.await_leader(failed)
