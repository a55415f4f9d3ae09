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
    "benchmarks.merging",
    "benchmarks.spark.zombie",
    "benchmarks.spark.publishing",
    "benchmarks.spark.outputs",
    "benchmarks.spark.many_batches",
    "benchmarks.spark.regional",
    "benchmarks.spark.failover",
    "benchmarks.spark.hangs",
    "benchmarks.spark.moving",
    "benchmarks.spark.first_call",
    "benchmarks.spark.workers",
    "benchmarks.spark.even_load",
    "benchmarks.spark.executors",
)
"""Names in the order in which benchmarks run and appear in the report."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: one word, from its module: ``spark_workers`` is in ``benchmarks.spark.workers``.
        title: what it measures, in a few words.
        run: measures it.
    """

    name: str
    title: str
    run: Callable[[Context], Result]


def names() -> list[str]:
    """Return the names of all benchmarks, in their order."""
    return [_name(module) for module in MODULES]


def find(wanted: Iterable[str] = ()) -> list[Benchmark]:
    """Return the benchmarks with these names, or all of them, in the catalogue's order.

    Raises:
        ValueError: no benchmark has such a name.
        ImportError: a module is missing, or lacks a package.
    """
    chosen = set(wanted)
    if unknown := chosen - set(names()):
        raise ValueError(f"There is no benchmark {min(unknown)!r}: they are {', '.join(names())}.")
    return [_load(module) for module in MODULES if not chosen or _name(module) in chosen]


def _name(module: str) -> str:
    return module.removeprefix("benchmarks.").replace(".", "_")


def _load(name: str) -> Benchmark:
    module = import_module(name)
    return Benchmark(module.NAME, module.TITLE, module.run)
