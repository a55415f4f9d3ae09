"""Checks of this host: Java, Spark, the descriptor limit, shared memory, the clock's rate and the Kerberos ticket."""

import os
import resource
import shutil
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from ha.agent.session_socket import lends
from ha.config.snapshot_dir import SHARED_MEMORY, SnapshotDirectory
from ha.doctor.finding import Finding, failed, ok, warning
from ha.sandbox.java import find_java
from ha.sandbox.polling import SandboxError
from ha.spark.partition_advice import PARTITIONS, advised
from store.clock import BOOT_CLOCK
from store.kerberos import ticket

FEWEST_DESCRIPTORS = 4096
"""Fewer are enough for a quiet day, but not for a flood of connections beside a job."""

LEAST_SHARED_MEMORY = 16 * 2**20
"""Bytes: the agent's answers for thousands of jobs, and some room."""

CLOCK_S = 0.5
"""Seconds for which two clocks are compared."""


def check_host(drift: float, keytab: str, *, kerberos: bool) -> Iterator[Finding]:
    """Yield what was found on this host.

    Args:
        drift: greatest relative error of a clock's rate that the settings allow.
        keytab: path of the keys by which processes log in to Kerberos; empty if they need a ticket.
        kerberos: whether Hadoop's configuration asks for Kerberos.
    """
    yield _java()
    yield _spark()
    yield _partitions(len(os.sched_getaffinity(0)))
    yield _descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield _shared_memory()
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
        "Start `ha agent` on this host, as this user, with the same settings. Until then contenders confirm their own.",
    )


def _java() -> Finding:
    try:
        java = find_java()
    except SandboxError as error:
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
        f"Twice the cores of the cluster suit a new query with state: {advised(cores)} on the {cores} of this host "
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


def _rate_error() -> float:
    """Return by which part the disciplined clock runs too fast, compared with the hardware's own rate."""

    def both() -> tuple[float, float]:
        return time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_MONOTONIC_RAW)

    (boot, raw) = both()
    BOOT_CLOCK.sleep(CLOCK_S)
    (boot_later, raw_later) = both()
    return (boot_later - boot) / (raw_later - raw) - 1


def _clock(error: float, drift: float) -> Finding:
    found = f"The clock is steered by {abs(error):.4%} of its rate; `drift` allows {drift:.2%}."
    if abs(error) < drift:
        return ok("clock", found)
    return failed("clock", found, "Mend the time service of this host, or raise `drift` on all hosts.")


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
