"""The job fails while its processes live, or at each start: drivers hang, and a bad version is deployed."""

from ha.drill.drill import Drill, Expected, bound
from ha.drill.environment import DrillError
from ha.drill.fixture import CONTENDERS, Fixture, Setup
from ha.drill.ha_provider import HYBRID, DrillJob

HANGS = Setup(settings={"heartbeat_timeout": 8.0})

KILLED_S = 5.0
"""Until a sidecar has kept the stacks of a driver that hangs, and killed it."""

BAD_VERSION_S = 20.0
FAILURES = 3
"""Grants of a bad version in that time, at least; each is followed by a longer pause than the one before."""


def _hang(kind: str, called: str, meaning: str) -> Drill:
    """A drill in which this part of the driver is frozen for good."""

    def run(fixture: Fixture) -> None:
        leader, epoch = fixture.leader, fixture.epoch

        def freeze() -> None:
            if not leader.freeze_child(kind):
                raise DrillError(f"{leader.name} has no {called} to freeze.")

        fixture.fault_at_once(
            f"the {called} of {leader.name} is frozen for good; its sidecar and its lease live on", freeze
        )
        fixture.await_leader(epoch)
        fixture.await_batches()

    return Drill(
        f"hang-{kind}",
        meaning,
        "hangs",
        run,
        Expected((1, 1), bound("heartbeat timeout + 5 s", "heartbeat_timeout", more=KILLED_S)),
        setup=HANGS,
    )


def _bad_version(job: DrillJob, name: str) -> list[str]:
    return [*HYBRID.contend(job, name), "--no-such-option"]


def _crash_loop(fixture: Fixture) -> None:
    epoch = fixture.epoch
    with fixture.fault(
        f"a version is deployed whose driver ends with an error at its start, for {BAD_VERSION_S:.0f} s"
    ):
        for name in CONTENDERS:
            fixture.contend(name, _bad_version)
        fixture.wait_for("some failures", lambda: fixture.epoch >= epoch + FAILURES)
        fixture.run_for(BAD_VERSION_S)
        failed = fixture.epoch
        for name in CONTENDERS:
            fixture.contend(name)
    fixture.await_leader(failed)
    fixture.await_batches()


DRILLS = (
    _hang(
        "driver",
        "driver",
        "the Python of the driver is frozen for good; its sidecar notices, and gives the leadership back",
    ),
    _hang(
        "jvm",
        "Java virtual machine",
        "the Java virtual machine under the driver is frozen for good; its sidecar notices that nothing answers",
    ),
    Drill(
        "crash-loop",
        "a version whose driver fails at each start is deployed, and replaced by the good one",
        "crashes",
        _crash_loop,
        # One grant for each failure, at growing distances, and one of the good version.
        Expected((FAILURES + 1, FAILURES + 6)),
    ),
)
