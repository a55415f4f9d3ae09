"""The job fails while its processes live, or at each start: drivers hang, and a bad version is deployed."""

from ha.drill.drill import Action, Expected, bound, drill
from ha.drill.fixture import Fixture, Setup
from ha.drill.ha_provider import HYBRID, DrillJob

KILLED_S = 5.0  # until a sidecar has kept the stacks of a driver that hangs, and killed it

BAD_VERSION_S = 20.0
FAILURES = 3  # grants of a bad version in that time, at least; each is followed by a longer pause than the one before


def _hang(kind: str, called: str) -> Action:
    def action(fixture: Fixture) -> None:
        leader = fixture.leader
        what = f"the {called} of {leader.name} is frozen for good; its sidecar and its lease live on"
        fixture.fault_at_once(what, lambda: fixture.strike(leader, "freeze", kind))

    return action


for _kind, _called, _notices in (
    ("driver", "Python of the driver", "notices, and gives the leadership back"),
    ("jvm", "Java virtual machine under the driver", "notices that nothing answers"),
):
    drill(
        f"hang-{_kind}",
        f"the {_called} is frozen for good; its sidecar {_notices}",
        "hangs",
        Expected((1, 1), bound("heartbeat timeout + 5 s", "heartbeat_timeout", more=KILLED_S)),
        setup=Setup(settings={"heartbeat_timeout": 8.0}),
    )(_hang(_kind, _called))


def _bad_version(job: DrillJob, name: str) -> list[str]:
    return [*HYBRID.contend(job, name), "--no-such-option"]


@drill(
    "crash-loop",
    "a version whose driver fails at each start is deployed, and replaced by the good one",
    "crashes",
    # One grant for each failure, at growing distances, and one of the good version.
    Expected((FAILURES + 1, FAILURES + 6)),
)
def _crash_loop(fixture: Fixture) -> None:
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
