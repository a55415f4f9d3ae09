"""Check of Spark's settings on this host: those that were measured to be bad, and who can reach its web pages.

Only the defaults of this host are known here. What a program sets itself counts more, and is not seen. The figures, and
the settings that made no difference, are in docs/even-load.md.
"""

from collections.abc import Iterator, Mapping

from ha.doctor.finding import Finding, ok, warning
from ha.sidecar.command.spark_overlay import DEFAULTS, users_configuration
from ha.sidecar.command.spark_submit import properties_of

CHECK = "spark settings"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BOUNDED = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
MOST = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"


def check_spark_settings(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning for each bad setting in the ``spark-defaults.conf`` that Spark reads in this environment."""
    folder = users_configuration(environment)
    file = folder / DEFAULTS if folder is not None else None
    given = properties_of(file) if file is not None else {}
    found = list(warnings(given))
    yield from found or [ok(CHECK, f"None is bad in {file}." if file is not None else f"There is no {DEFAULTS}.")]
    yield pages(given, environment)


def pages(given: Mapping[str, str], environment: Mapping[str, str]) -> Finding:
    """Check who can reach the web pages of a driver, given these settings of Spark."""
    if given.get("spark.ui.enabled", "").strip().lower() == "false":
        return ok("spark pages", "Drivers have none.")
    if "spark.ui.filters" in given:
        return ok("spark pages", f"A user who passes {given['spark.ui.filters']} sees those of a driver.")
    if environment.get("SPARK_LOCAL_IP", "").startswith(("127.", "::1")):
        return ok("spark pages", "Only this host sees those of a driver.")
    return warning(
        "spark pages",
        "A driver's pages listen on all addresses, and everyone who sees them can kill its stages.",
        "Set spark.ui.enabled to false, or spark.ui.filters, or SPARK_LOCAL_IP=127.0.0.1 where all of Spark is on one "
        "host; at least set spark.ui.killEnabled to false.",
    )


def warnings(given: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning for each bad one of these settings of Spark, by name."""
    if given.get(PROVIDER) == ROCKSDB and not _on(given.get(BOUNDED, "")):
        yield warning(
            CHECK,
            f"State is in RocksDB, and {BOUNDED} is not true: nothing bounds its memory outside of an executor's heap.",
            f"Set it to true, and {MOST} to what spark.executor.memoryOverhead has room for.",
        )


def _on(value: str) -> bool:
    return value.strip().lower() == "true"
