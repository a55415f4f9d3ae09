"""Lanes: which test of the gate runs beside which. A lane is one process that runs its tests one after the other."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNITS = ("unit-1", "unit-2", "unit-3")
"""Lanes of what needs no server, starts no program and takes no second: a failure there is never a matter of time."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What is known of a lane before it begins.

    Attributes:
        jvms: whether it starts JVMs all the time; two such lanes may run at once.
        lent: whether it works on the sandbox that the gate has started, which it does not hurt.
    """

    jvms: bool = False
    lent: bool = False


LANES: Mapping[str, Lane] = {
    "session": Lane(jvms=True, lent=True),
    "zoo": Lane(jvms=True, lent=True),
    "drivers": Lane(jvms=True, lent=True),
    "stores": Lane(lent=True),
    "programs-1": Lane(),
    "programs-2": Lane(),
    "programs-3": Lane(),
    UNITS[0]: Lane(),
    "programs-4": Lane(),
    UNITS[1]: Lane(),
    UNITS[2]: Lane(),
    "servers": Lane(jvms=True),
    "pure-1": Lane(),
    "pure-2": Lane(),
}
"""In the order in which they begin: the longest first; the last ones run side by side until the end."""

NAMED: Mapping[str, tuple[str, ...]] = {
    "drivers": ("tests/system/spark/test_supervised.py", "tests/system/spark/test_word_count.py"),
    "zoo": ("tests/system/zoo/test_zoo.py",),
    "servers": ("tests/system/integration/", "tests/system/sandbox/"),
}
"""How the ids begin of tests that start cold drivers of their own, and of those that hurt their servers, or count what
is asked of them."""


def lane_of(test: Mapping[str, Any]) -> str:
    """Return the lane of a test of the gate; a lane that is cut in two is named by its beginning.

    Args:
        test: its ``id``, ``marks`` and ``fixtures``, as ``tests.gate.record`` writes them.
    """
    name, marks = test["id"], set(test["marks"])
    if named := next((lane for lane, ids in NAMED.items() if name.startswith(ids)), ""):
        return named
    if "spark" in marks or "spark" in test["fixtures"]:
        return "session"
    if marks & {"hdfs", "zookeeper"}:
        return "stores"
    if marks & {"programs", "slow"} and name.startswith("tests/unit/"):
        return "programs"
    return "unit" if name.startswith("tests/unit/") else "pure"


def planned(tests: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the ids of each lane's tests. A file's tests of one kind stay together."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for test in tests:
        kinds.setdefault(lane_of(test), {}).setdefault(test["id"].partition("::")[0], []).append(test["id"])
    lanes: dict[str, list[str]] = {}
    for kind, files in kinds.items():
        parts = [lane for lane in LANES if lane == kind or lane.rpartition("-")[0] == kind]
        sizes = Counter(dict.fromkeys(parts, 0))
        for ids in sorted(files.values(), key=len, reverse=True):
            least = min(parts, key=lambda part: sizes[part])
            sizes[least] += len(ids)
            lanes.setdefault(least, []).extend(ids)
    return {lane: lanes[lane] for lane in LANES if lane in lanes}


def files_of(ids: Sequence[str]) -> list[str]:
    return sorted({each.partition("::")[0] for each in ids})
