"""Made-up results for reports."""

import math

from benchmarks.report import Entry, Machine
from benchmarks.result import Picture, Result, Target

MACHINE = Machine("a processor", 2, 24.0, 0.1, "6.1", "3.11.7", "openjdk 17", {"kazoo": "2.11.0"})


def result(measured: float = 1.5) -> Result:
    return Result(
        ("who", "p50 (ms)"),
        (("here", measured), ("a|b", 12345)),
        (Target("not too slow", 2.0, measured, "ms", at_most=True),),
        ("A note.",),
        (Picture("bars", "Bars", "<svg/>"),),
        {"durations": [1.0, math.inf]},
    )


def entry(name: str, measured: float = 1.5) -> Entry:
    return Entry(name, f"The {name}", "today", f"python -m benchmarks {name}", MACHINE, result(measured))
