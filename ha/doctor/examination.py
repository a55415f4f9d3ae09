"""The examination: all checks, in the order in which people look for a cause."""

import os
from collections.abc import Iterator, Sequence

from ha.config.exposure import exposures
from ha.config.sources import DEFAULT, Gathered
from ha.config.stores import Stores
from ha.doctor.drained import check_drained
from ha.doctor.file_system import check_file_system
from ha.doctor.finding import Finding, ok, warning
from ha.doctor.host import check_host, check_lender
from ha.doctor.job_directory import Consent, check_job_directory
from ha.doctor.servers import check_namenodes, check_zookeeper, hadoop
from ha.doctor.spark_settings import check_spark_settings
from ha.groups.placement.place import roots_of

PATIENCE = 4
"""A doctor waits this many times as long as a call of the protocol may take: it wants to see how slow a store is."""


def examine(gathered: Gathered, jobs: Sequence[str] = (), consent: Consent | None = None) -> Iterator[Finding]:
    """Yield each finding as soon as it is there.

    Args:
        gathered: the settings and their sources.
        jobs: whose directories are looked at.
        consent: is asked before anything in them is mended; None if nothing is.

    Raises:
        InvalidSettings: an address has the wrong form.
    """
    settings = gathered.settings
    yield from _check_settings(gathered)
    stores = Stores(settings)
    try:
        timeout = settings.timing.call_timeout * PATIENCE
        yield from check_file_system(stores.files, timeout)
        yield from check_drained(stores.files, settings.contender, timeout)
        for job in jobs:
            yield from check_job_directory(stores.files, job, timeout, settings.timing.long_ttl_ms, consent)
        for root in roots_of(stores.files.uri):
            yield from check_namenodes(root, settings.webhdfs_ca)
        yield from check_zookeeper(settings, stores.zookeeper)
        if settings.borrows_session:
            yield check_lender(stores.snapshots)
    finally:
        stores.close()
    yield from check_spark_settings(os.environ)
    yield from check_host(
        settings.drift, settings.kerberos_keytab, kerberos=hadoop().get("hadoop.security.authentication") == "kerberos"
    )


def _check_settings(gathered: Gathered) -> Iterator[Finding]:
    given = [f"{name} ({source})" for name, source in gathered.sources.items() if source != DEFAULT]
    yield ok("settings", f"Given: {', '.join(given) or 'none'}. `ha config show` prints all of them.")
    if gathered.settings.files.startswith("file:"):
        yield warning(
            "settings",
            f"files is {gathered.settings.files} ({gathered.sources['files']}): it guards this host alone.",
            "For more than one host set `files` to hdfs://.",
        )
    for each in exposures(gathered.settings):
        found, _, remedy = each.rpartition(": ")
        yield warning("credentials", f"{found}.", remedy)
