"""Checks of this host: Java, Spark and its settings, descriptors, memory, temporary files, the clock, the ticket."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ha.agent.shared_session import lends
from ha.config.snapshot_dir import SHARED_MEMORY, SnapshotDirectory
from ha.doctor.finding import Finding, failed, ok, warning
from ha.hosts.host_error import HostError
from ha.hosts.java import find_java
from ha.sidecar.command.spark_overlay import DEFAULTS, users_configuration
from ha.sidecar.command.spark_submit import properties_of
from ha.spark.session.spark_settings import HEAD_ROOM, PARTITIONS
from store.clock import BOOT_CLOCK
from store.kerberos import ticket

FEWEST_DESCRIPTORS = 4096  # fewer are enough for a quiet day, but not for a flood of connections beside a job
LEAST_SHARED_MEMORY = 16 * 2**20  # bytes: the agent's answers for thousands of jobs, and some room
EXEC = "Mount it with exec, or let TMPDIR name another directory."
CLOCK_S = 0.5  # seconds for which two clocks are compared


def check_host(drift: float, keytab: str, *, kerberos: bool) -> Iterator[Finding]:
    """Yield what was found on this host."""
    # `drift`: greatest relative error of a clock's rate that the protocol allows. `keytab`: path of the keys by which
    # processes log in to Kerberos; empty if they need a ticket. `kerberos`: whether Hadoop's configuration asks for
    # Kerberos.
    yield _java()
    yield _spark()
    yield _partitions(len(os.sched_getaffinity(0)))
    yield _descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield _shared_memory()
    yield _temporary_directory()
    yield _clock(_rate_error(), drift)
    if kerberos:
        yield _ticket(ticket(), keytab)


def check_lender(place: SnapshotDirectory | None) -> Finding:
    """Examine whether an agent of this host lends its ZooKeeper session, as the settings ask for."""
    if place is not None and lends(place):
        return ok("shared session", f"An agent lends its ZooKeeper session in {place.path}.")
    return warning(
        "shared session",
        f"zookeeper_session is host, and no agent lends its session in {place.path if place else 'snapshots'}.",
        "Start `ha host agent` on this host, as this user, with the same settings. Until then contenders "
        "confirm their own.",
    )


def _java() -> Finding:
    try:
        java = find_java()
    except HostError as error:
        return warning("java", f"{error}", "Spark needs it; a contender itself does not.")
    return ok("java", f"{java.path} is Java {java.version}.")


def _spark() -> Finding:
    try:
        return ok("spark", f"PySpark {version('pyspark')}.")
    except PackageNotFoundError:
        return warning(
            "spark", "PySpark is not installed beside this package.", "pip install 'hybrid-ha[spark]', if jobs need it."
        )


def _partitions(cores: int) -> Finding:
    return ok(
        "state partitions",
        f"Twice the cores of the cluster suit a new query with state: {HEAD_ROOM * cores} on the {cores} of this host "
        f"alone. Spark freezes {PARTITIONS} with its first batch.",
    )


def _descriptors(limit: int) -> Finding:
    if limit == resource.RLIM_INFINITY or limit >= FEWEST_DESCRIPTORS:
        return ok("descriptors", f"A process may open {'any number of' if limit < 0 else limit} files.")
    return warning(
        "descriptors",
        f"A process may open {limit} files.",
        f"Raise the limit to {FEWEST_DESCRIPTORS} or more: `ulimit -n`, or LimitNOFILE= in a systemd unit.",
    )


def _shared_memory() -> Finding:
    where = str(SHARED_MEMORY)
    if not SHARED_MEMORY.is_dir() or not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return warning(
            "shared memory",
            f"{where} is missing, or may not be written.",
            "Mount it, or set `snapshots` to another directory: without it every lookup asks a store.",
        )
    free = shutil.disk_usage(SHARED_MEMORY).free
    if free < LEAST_SHARED_MEMORY:
        return warning(
            "shared memory",
            f"{where} has {free // 2**20} MiB free.",
            "Make it larger (docker: --shm-size), or set `snapshots` to another directory.",
        )
    return ok("shared memory", f"{where} has {free // 2**20} MiB free.")


def _temporary_directory() -> Finding:
    """Examine where a sidecar keeps what it shares with its command: it makes that again if a cleaner takes it."""
    check, remedy = "temporary dir", "Mend that, or let TMPDIR name another directory: no command starts there."
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
        where, room = tempfile.gettempdir(), os.statvfs(tempfile.gettempdir())
    except OSError as error:
        return failed(check, f"No file can be made in the temporary directory: {error}.", remedy)
    free = room.f_bavail * room.f_frsize
    if free < LEAST_SHARED_MEMORY:
        return warning(check, f"{where} has {free // 2**20} MiB free.", remedy)
    if room.f_flag & os.ST_NOEXEC and not _has_library():
        return warning(check, f"{where} is mounted noexec: Spark's RocksDB cannot load its library from there.", EXEC)
    return ok(check, f"{where} has {free // 2**20} MiB free.")


def _has_library() -> bool:
    """Return whether a JVM finds RocksDB's library as a file, and need not unpack one."""
    places = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return any(list(Path(each).glob("librocksdbjni*")) for each in places if each)


def _rate_error() -> float:
    """Return by which part the disciplined clock runs too fast, compared with the hardware's own rate."""

    def both() -> tuple[float, float]:
        return time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_MONOTONIC_RAW)

    (boot, raw) = both()
    BOOT_CLOCK.sleep(CLOCK_S)
    (boot_later, raw_later) = both()
    return (boot_later - boot) / (raw_later - raw) - 1


def _clock(error: float, drift: float) -> Finding:
    found = f"The clock is steered by {abs(error):.4%} of its rate; the protocol allows {drift:.2%}."
    if abs(error) < drift:
        return ok("clock", found)
    return failed("clock", found, "Mend the time service of this host.")


def _ticket(life: tuple[float, float] | None, keytab: str) -> Finding:
    """Judge the ticket: seconds that it still lasts, and how many altogether; None if none was found."""
    if keytab:
        if os.access(keytab, os.R_OK):
            return ok("ticket", f"Processes log in from {keytab}, which can be read.")
        return failed("ticket", f"{keytab} cannot be read.", "Let kerberos_keytab name a file that this user may read.")
    remedy = "Run kinit, or set kerberos_keytab and kerberos_principal: then processes log in by themselves."
    if life is None:
        return warning("ticket", "No Kerberos ticket was found in a file.", remedy)
    if life[0] <= 0:
        return failed("ticket", f"The Kerberos ticket has expired {-life[0]:,.0f} s ago.", remedy)
    return ok("ticket", f"The Kerberos ticket lasts for another {life[0]:,.0f} s of {life[1]:,.0f}.")


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
    if given.get(PROVIDER) == ROCKSDB and given.get(BOUNDED, "").strip().lower() != "true":
        yield warning(
            CHECK,
            f"State is in RocksDB, and {BOUNDED} is not true: nothing bounds its memory outside of an executor's heap.",
            f"Set it to true, and {MOST} to what spark.executor.memoryOverhead has room for.",
        )
