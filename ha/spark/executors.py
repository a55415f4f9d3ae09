"""Executors: asks the cluster of a session for another number of them, while its queries run.

It is the request that dynamic allocation makes: ``SparkContext.requestTotalExecutors``. Where that is switched on it
alone decides, within bounds that Spark reads once, and it would change the number back.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from ha.spark.private_names import jvm_of
from leader.job.requests import State
from store.clock import BOOT_CLOCK, Clock

WITHIN_S = 60.0
"""So long the cluster may take; it goes on after that, but nobody is told."""

POLL_S = 0.5

Tell = Callable[[State, str], object]


def rescale_executors(spark: SparkSession, count: int, tell: Tell, clock: Clock = BOOT_CLOCK) -> None:
    """Ask for so many executors in all, end those that are too many, and wait until there are as many.

    Args:
        spark: the session.
        count: how many, at least 1.
        tell: called with the progress, and at last with the end.
        clock: waits.
    """
    jvm = jvm_of(spark)
    context = jvm.org.apache.spark.SparkContext.getOrCreate()
    if (refusal := _refusal(context)) is not None:
        tell(State.REFUSED, refusal)
        return
    before = len(_executors(context))
    end = clock.now() + WITHIN_S
    while True:
        # At each look: one that was asked for before may register meanwhile.
        if not _ask(jvm, context, count):
            tell(State.REFUSED, "Its cluster does not take such a request, or does not answer it.")
            return
        there = len(_executors(context))
        if there == count:
            tell(State.DONE, f"Executors: {there}, and {before} before. A restart begins with its own settings.")
            return
        if clock.now() >= end:
            tell(
                State.FAILED,
                f"Executors: {there} of {count} after {WITHIN_S:g} s; {count} stay asked for until the program ends. "
                "Look whether the cluster has room for them, and whether spark.cores.max allows them.",
            )
            return
        tell(State.ACCEPTED, f"Executors: {there} of {count}.")
        clock.sleep(POLL_S)


def _refusal(context: Any) -> str | None:
    if context.isLocal():
        return "Its Spark runs in local mode, in one process, which has no executors."
    if context.getConf().getBoolean("spark.dynamicAllocation.enabled", False):
        return (
            "Dynamic allocation decides about its executors (spark.dynamicAllocation.enabled): set "
            "spark.dynamicAllocation.minExecutors and spark.dynamicAllocation.maxExecutors, and `ha restart`."
        )
    return None


def _ask(jvm: Any, context: Any, count: int) -> bool:
    """End the newest of too many, and ask for so many in all; returns whether the cluster acknowledges it."""
    if surplus := _executors(context)[count:]:
        # Spark counts no failure of the tasks there. It asks for as many less, so the number follows.
        context.killExecutors(jvm.PythonUtils.toSeq(surplus))
    return bool(context.requestTotalExecutors(count, 0, jvm.PythonUtils.toScalaMap({})))


def _executors(context: Any) -> list[str]:
    """Return the ids of the executors that have registered and not ended, oldest first."""
    found = context.getExecutorIds()
    return sorted((found.apply(number) for number in range(found.size())), key=int)
