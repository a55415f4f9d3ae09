"""The machine fails its user: clocks jump, disks fill up, memory runs out."""

from ha.drill.drill import Drill, Expected, changed
from ha.drill.ground import Ability, DrillError
from ha.drill.stage import Stage

AN_HOUR = 3600.0
SHIFTED = 20.0
FULL = 15.0
ENDED = 10.0
"""Seconds until a driver without its Java virtual machine has ended, and its sidecar has given the leadership back."""


def _shift_clocks(stage: Stage) -> None:
    everybody = stage.ground.everybody()
    with stage.fault("every clock is shifted by an hour, every second one backwards"):
        for number, each in enumerate(everybody):
            stage.ground.shift_clock(each, AN_HOUR if number % 2 else -AN_HOUR)
        stage.rest(SHIFTED)
        for each in everybody:
            stage.ground.shift_clock(each, 0.0)
        stage.rest(SHIFTED / 2)
    stage.batches()


def _fill_disk(stage: Stage) -> None:
    leader = stage.leader
    with stage.fault(f"the disk of {leader.name} is full for {FULL:.0f} s"):
        leader.fill_disk()
        stage.rest(FULL)
        leader.clear_disk()
    stage.batches()


def _run_out_of_memory(stage: Stage) -> None:
    leader, epoch = stage.leader, stage.epoch

    def exhaust() -> None:
        if not leader.strike("jvm", "expose"):
            raise DrillError(f"{leader.name} has no Java virtual machine.")
        leader.exhaust_memory()

    stage.strike(f"the memory of {leader.name} runs out, and the kernel ends its driver", exhaust)
    stage.await_leader(epoch)
    stage.batches()


DRILLS = (
    Drill(
        "clocks-shifted",
        "every wall clock jumps by an hour, forwards or backwards, and back",
        "machine",
        _shift_clocks,
        needs=frozenset({Ability.CLOCK}),
        interval=0.0,  # Spark waits for the end of an interval by the wall clock: set back an hour, for an hour
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
        "the driver is ended by the kernel because memory has run out",
        "machine",
        _run_out_of_memory,
        Expected((1, 1), changed("the driver's end", more=ENDED)),
        needs=frozenset({Ability.LIMITS}),
    ),
)
