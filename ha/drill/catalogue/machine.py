"""Machines fail: clocks jump, disks fill up, memory runs out."""

from ha.drill.drill import Drill, Expected, bound
from ha.drill.environment import Ability, DrillError
from ha.drill.fixture import Fixture, Setup

HOUR_S = 3600.0
SHIFTED_S = 20.0
FULL_S = 15.0
DRIVER_END_S = 10.0
"""Until a driver without its Java virtual machine has ended, and its sidecar has given the leadership back."""


def _shift_clocks(fixture: Fixture) -> None:
    hosts = fixture.environment.hosts()
    with fixture.fault("every clock is shifted by an hour, every second one backwards"):
        for number, each in enumerate(hosts):
            fixture.environment.shift_clock(each, HOUR_S if number % 2 else -HOUR_S)
        fixture.run_for(SHIFTED_S)
        for each in hosts:
            fixture.environment.shift_clock(each, 0.0)
        fixture.run_for(SHIFTED_S / 2)
    fixture.await_batches()


def _fill_disk(fixture: Fixture) -> None:
    leader = fixture.leader
    with fixture.fault(f"the disk of {leader.name} is full for {FULL_S:.0f} s"):
        leader.fill_disk()
        fixture.run_for(FULL_S)
        leader.clear_disk()
    fixture.await_batches()


def _run_out_of_memory(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch

    def exhaust() -> None:
        if not leader.expose_child("jvm"):
            raise DrillError(f"{leader.name} has no Java virtual machine.")
        leader.exhaust_memory()

    fixture.fault_at_once(f"the memory of {leader.name} runs out, and the kernel ends its driver", exhaust)
    fixture.await_leader(epoch)
    fixture.await_batches()


DRILLS = (
    Drill(
        "clocks-shifted",
        "every wall clock jumps by an hour, forwards or backwards, and back",
        "machine",
        _shift_clocks,
        needs=frozenset({Ability.CLOCK}),
        setup=Setup(
            interval=0.0
        ),  # Spark waits for the end of an interval by the wall clock; a clock set back an hour means an hour
    ),
    Drill(
        "disk-full",
        "the disk of the leading sidecar is full for 15 s",
        "machine",
        _fill_disk,
        Expected((0, 1)),
        needs=frozenset({Ability.LIMITS}),
    ),
    Drill(
        "out-of-memory",
        "memory runs out, and the kernel ends the driver",
        "machine",
        _run_out_of_memory,
        Expected((1, 1), bound("the driver's end", more=DRIVER_END_S)),
        needs=frozenset({Ability.LIMITS}),
    ),
)
