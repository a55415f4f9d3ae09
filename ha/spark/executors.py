"""Executors: asks the cluster of a session for another number of them, while its queries run.

It is the request that dynamic allocation makes. Where that is switched on it decides alone, and would change the number
back. A cluster that has no room gives fewer, and the rest when it has.
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
    """Ask for so many executors in all, end those that are too many, and tell what comes of it.

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
    before = _executors(context)
    if surplus := before[count:]:
        # Their tasks start again elsewhere. It lowers the number that is asked for, so that is said after this.
        context.killExecutors(jvm.PythonUtils.toSeq(surplus))
    none = jvm.PythonUtils.toScalaMap({})
    if not context.requestTotalExecutors(count, 0, none):
        tell(State.FAILED, f"The cluster does not acknowledge that it is to give {count} executors.")
        return
    end = clock.now() + WITHIN_S
    while (there := len(_executors(context))) != count and clock.now() < end:
        tell(State.ACCEPTED, f"It has {there} executors of {count}.")
        clock.sleep(POLL_S)
    if there == count:
        tell(State.DONE, f"It has {count} executors; it had {len(before)}. A restart begins with its own settings.")
    else:
        tell(
            State.FAILED,
            f"It has {there} executors after {WITHIN_S:g} s, and {count} stay asked for: see whether the cluster has "
            "room for them, and spark.cores.max allows them.",
        )


def _refusal(context: Any) -> str | None:
    if context.isLocal():
        return "Its Spark runs in local mode, in one process, which has no executors."
    if context.getConf().getBoolean("spark.dynamicAllocation.enabled", False):
        return (
            "Its cluster decides by the load, because spark.dynamicAllocation.enabled is set: set "
            "spark.dynamicAllocation.minExecutors and .maxExecutors, and `ha restart`."
        )
    return None


def _executors(context: Any) -> list[str]:
    """Return the ids of the executors, oldest first."""
    found = context.getExecutorIds()
    return sorted((found.apply(number) for number in range(found.size())), key=lambda each: (len(each), each))
