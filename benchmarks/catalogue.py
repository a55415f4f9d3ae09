"""Catalogue of the benchmarks. A benchmark's module is imported only when it is wanted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from benchmarks.context import Context
from benchmarks.result import Result

MODULES = (
    "benchmarks.lookup",
    "benchmarks.publish",
    "benchmarks.takeover",
    "benchmarks.availability",
    "benchmarks.thousand_jobs",
    "benchmarks.draining",
    "benchmarks.groups",
    "benchmarks.checkpoints",
    "benchmarks.replication",
    "benchmarks.scale",
    "benchmarks.spark.zombie",
    "benchmarks.spark.publishing",
    "benchmarks.spark.outputs",
    "benchmarks.spark.many_batches",
    "benchmarks.spark.failover",
    "benchmarks.spark.hangs",
    "benchmarks.spark.first_call",
    "benchmarks.spark.workers",
)
"""Names in the order in which benchmarks run and appear in the report."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark."""

    name: str  # one word, from its module: ``spark_workers`` is in ``benchmarks.spark.workers``
    title: str  # what it measures, in a few words
    run: Callable[[Context], Result]  # measures it
    compares: bool = False  # whether it can measure another commit beside this one


def names() -> list[str]:
    """Return the names of all benchmarks, in their order."""
    return [_name(module) for module in MODULES]


def find(wanted: Iterable[str] = ()) -> list[Benchmark]:
    """Return the benchmarks with these names, or all of them, in the catalogue's order."""
    chosen = set(wanted)
    if unknown := chosen - set(names()):
        raise ValueError(f"There is no benchmark {min(unknown)!r}: they are {', '.join(names())}.")
    return [_load(module) for module in MODULES if not chosen or _name(module) in chosen]


def _name(module: str) -> str:
    return module.removeprefix("benchmarks.").replace(".", "_")


def _load(name: str) -> Benchmark:
    module = import_module(name)
    return Benchmark(_name(name), module.TITLE, module.run, getattr(module, "COMPARES", False))
