"""Machines fail: clocks jump, disks fill up, memory runs out."""

from ha.drill.drill import STAYS, Expected, bound, drill
from ha.drill.environment import Ability
from ha.drill.fixture import Fixture, Setup

HOUR_S = 3600.0
SHIFTED_S = 20.0
FULL_S = 15.0
DRIVER_END_S = 10.0
"""Until a driver without its Java virtual machine has ended, and its sidecar has given the leadership back."""


# Spark waits for the end of an interval by the wall clock; a clock set back an hour means an hour.
@drill("machine", STAYS, Ability.CLOCK, setup=Setup(interval=0.0))
def clocks_shifted(fixture: Fixture) -> None:
    """Every wall clock jumps by an hour, every second one backwards, and back."""
    hosts = fixture.environment.hosts()
    with fixture.fault("every clock is shifted by an hour, every second one backwards"):
        for number, each in enumerate(hosts):
            fixture.environment.shift_clock(each, HOUR_S if number % 2 else -HOUR_S)
        fixture.run_for(SHIFTED_S)
        for each in hosts:
            fixture.environment.shift_clock(each, 0.0)
        fixture.run_for(SHIFTED_S / 2)


@drill("machine", Expected((0, 1)), Ability.LIMITS)
def disk_full(fixture: Fixture) -> None:
    """The disk of the leading sidecar is full for 15 s."""
    leader = fixture.leader
    with fixture.fault(f"the disk of {leader.name} is full for {FULL_S:.0f} s"):
        leader.fill_disk()
        fixture.run_for(FULL_S)
        leader.clear_disk()


@drill("machine", Expected((1, 1), bound("the driver's end", more=DRIVER_END_S)), Ability.LIMITS)
def out_of_memory(fixture: Fixture) -> None:
    """Memory runs out, and the kernel ends the driver."""
    leader = fixture.leader

    def exhaust() -> None:
        fixture.strike(leader, "expose", "jvm")
        leader.exhaust_memory()

    fixture.fault_at_once(f"the memory of {leader.name} runs out, and the kernel ends its driver", exhaust)
