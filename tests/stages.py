"""Stages: which tests decide whether a commit lands (the gate), and which qualify it afterwards, stage by stage.

``make test`` runs what no stage of the table has. ``make qualify`` runs the stages, one after the other, alone on the
machine: what is long, what is about speed, and what starts many JVMs. No test is in neither.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest

GATE = "gate"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of ``make qualify``.

    Attributes:
        proves: what it shows, for people.
        tests: how the ids of its tests begin; none begin as those of "timed", which have a marker.
    """

    proves: str
    tests: tuple[str, ...]


def _spark(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/system/spark/test_{name}.py" for name in names)


def _integration(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/system/integration/test_{name}.py" for name in names)


STAGES: Mapping[str, Stage] = {
    "containers": Stage(
        "images, and failover drills of containers that share nothing",
        ("tests/system/containers/", "tests/system/drills/test_containers.py"),
    ),
    "drills": Stage(
        "failover drills in the sandbox, and on two hosts",
        ("tests/system/drills/test_sandbox.py", "tests/system/deploying/"),
    ),
    "failovers": Stage(
        "drivers that are killed again and again, that hang, that are taken up, that save and go on",
        _spark("engine", "executors", "drained_executors", "grid", "marathon", "savepoints", "stuck", "zombie"),
    ),
    "connectors": Stage(
        "Kafka, Hive's metastore, tables, clusters of workers",
        _spark("metastore", "tables", "topic", "topic_output", "worker_clusters"),
    ),
    "programs": Stage("programs as people write them", ("tests/system/zoo/",)),
    "faults": Stage(
        "stores that fail: two NameNodes, routers, groups, ensembles, quotas",
        (
            *_integration("namenode_groups", "namenodes", "router", "server_faults", "takeovers", "zookeeper_faults"),
            *_integration("shards"),
        ),
    ),
    "secured": Stage("stores with Kerberos, TLS and access lists", ("tests/system/secured/",)),
    "searches": Stage(
        "every order of events in a small model; the simulator and its canaries; two checkers; old bugs",
        (
            "tests/system/exhaustive/",
            "tests/system/simulation/test_canaries.py",
            "tests/system/simulation/test_simulation.py::test_every_promise_is_kept",
            "tests/system/second_checker/",
            "tests/system/mutants/",
            "tests/system/track_record/",
        ),
    ),
    "hostile": Stage(
        "decoders under a fuzzer, and floods of connections",
        ("tests/system/fuzz/", "tests/unit/ha/listening/test_flood.py"),
    ),
    "page": Stage("the page, in a browser", ("tests/system/page/",)),
    "costs": Stage(
        "what is asked of the stores, counted; baselines of the benchmarks",
        (
            "tests/system/benchmarks/",
            "tests/unit/store/test_counting.py",
            "tests/unit/benchmarks/test_counting_work.py",
        ),
    ),
    "packages": Stage("packages as users install them", ("tests/unit/test_packaging.py",)),
    "timed": Stage("what waits for an expiry, or asserts a duration: tests with that marker, wherever they are", ()),
}


def stage_of(nodeid: str, markers: Collection[str] = ()) -> str:
    """Return the name of the stage that a test belongs to, or ``GATE``; its id counts before its markers."""
    named = (name for name, stage in STAGES.items() if nodeid.startswith(stage.tests))
    return next(named, "timed" if "timed" in markers else GATE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stage", choices=[GATE, *STAGES], help="run the tests of this stage alone")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--stage")
    if wanted is not None:
        stages = [stage_of(item.nodeid, {mark.name for mark in item.iter_markers()}) for item in items]
        config.hook.pytest_deselected(
            items=[item for item, stage in zip(items, stages, strict=True) if stage != wanted]
        )
        items[:] = [item for item, stage in zip(items, stages, strict=True) if stage == wanted]
