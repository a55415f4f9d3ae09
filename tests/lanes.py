"""Lanes: which tests run one after the other when several processes share the suite (pytest-xdist, ``make test``).

A lane is a queue of tests that one process runs from beginning to end. A test file is a lane, unless the tables below
say otherwise. Most tests wait most of the time, so there are more processes than cores. The longest lanes begin first,
and what only computes steps back for what waits (``in_background``).
"""

import os
import resource
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


def _files(folder: str, lane: str, *names: str) -> dict[str, str]:
    return {f"{folder}/test_{name}.py": lane for name in names}


OWN_SERVERS = "own servers"
"""The lane of tests that hurt the sandbox, or count what it is asked: the process that begins with it shares none."""

LANES = {
    "tests/system/integration/": OWN_SERVERS,
    "tests/system/benchmarks/test_contenders.py": OWN_SERVERS,
    "tests/unit/store/test_counting.py": OWN_SERVERS,
    "tests/unit/benchmarks/test_counting_work.py": OWN_SERVERS,
    "tests/system/containers/": "containers",
    "tests/system/drills/test_containers.py": "containers",  # one set of servers, with fixed names and ports
    "tests/system/exhaustive/": "searches",  # each file takes both cores
    "tests/system/simulation/": "searches",
    # Each test starts drivers with JVMs of their own: one test at a time, or they starve each other.
    **_files("tests/system/spark", "drivers", "engine", "grid", "marathon", "supervised", "zombie", "word_count"),
    **_files("tests/system/spark", "drivers", "worker_clusters"),
    "tests/system/drills/test_sandbox.py": "drivers",
    "tests/system/deploying/": "drivers",
    "tests/system/zoo/": "drivers",
    "tests/system/spark/": "session",  # the other files share one driver
    "tests/system/benchmarks/": "benchmarks",
    "tests/system/sandbox/": "sandboxes",
}
"""The lane of the tests whose id begins like this. Lanes begin in this order, before all others."""

APART = ("tests/unit/ha/sidecar/", "tests/unit/ha/cli/test_status.py", "tests/unit/ha/cli/test_history.py")
"""Where each test is a lane of its own: tests that wait, and that share nothing."""


def lane_of(nodeid: str) -> str:
    lane = next((lane for begin, lane in LANES.items() if nodeid.startswith(begin)), None)
    return lane or (nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0])


def begins_with_own_servers() -> bool:
    return lane_of(os.environ["PYTEST_CURRENT_TEST"]) == OWN_SERVERS


def in_background(processor_s: int = resource.RLIM_INFINITY) -> None:
    """Give this process the lowest priority: it computes, while beside it tests wait for deadlines of real time.

    It gets what the others leave, so no real time bounds it: the kernel ends it after so many seconds on a processor.
    """
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s))


BOUNDED_BY_WORK = pytest.mark.timeout(0)
"""For a test that waits for processes in the background that have a limit of their own."""


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    """Use lanes, and keep the order of the tests that the processes have collected."""
    config.option.loadscopereorder = False
    return Lanes(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Let each of several processes begin its collection at another file.

    Pytest compiles a test file that is new, and keeps the result. So each process compiles its part, and all of them
    read the rest: with four processes a clean clone is spared 20 s of computing.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        files = [str(file) for each in config.args for file in _test_files(Path(each))]
        number, processes = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        begin = len(files) * number // processes
        config.args = files[begin:] + files[:begin]


def _test_files(chosen: Path) -> list[Path]:
    return sorted(chosen.rglob("test_*.py")) if chosen.is_dir() else [chosen]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests one order in all processes: the long lanes first, then by file."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {lane: rank for rank, lane in enumerate(dict.fromkeys(LANES.values()))}
        items.sort(key=lambda item: (ranks.get(lane_of(item.nodeid), len(ranks)), item.nodeid.partition("::")[0]))
