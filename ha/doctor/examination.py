"""The examination: all checks, in the order in which people look for a cause."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ha.config.log import exposures
from ha.config.sources import DEFAULT, Gathered
from ha.config.stores import Stores
from ha.doctor.file_system import check_file_system
from ha.doctor.finding import Finding, failed, ok, warning
from ha.doctor.host import check_host, check_lender, check_spark_settings
from ha.doctor.job_directory import Consent, check_job_directory, check_outputs
from ha.doctor.servers import check_namenodes, check_zookeeper, hadoop
from ha.placement.place import roots_of
from leader.job.barring import drained
from leader.layout.bar import bar_of
from store.bounded import BoundedFiles
from store.clock import wall
from store.errors import StoreError
from store.traits import traits
from store.uris import split

_JAVAS_HOST = re.compile(r"[0-9a-z.:%-]*")  # others are none for java.net.URI, though they may be known to DNS

PATIENCE = 4
"""A doctor waits this many times as long as a call of the protocol may take: it wants to see how slow a store is."""


def examine(gathered: Gathered, jobs: Sequence[str] = (), consent: Consent | None = None) -> Iterator[Finding]:
    """Yield each finding as soon as it is there."""
    # `gathered`: the settings and their sources. `jobs`: whose directories are looked at. `consent`: is asked before
    # anything in them is mended; None if nothing is.
    # InvalidSettings: an address has the wrong form.
    settings = gathered.settings
    yield from _check_settings(gathered)
    stores = Stores(settings)
    try:
        timeout = settings.leadership.timing.call_timeout * PATIENCE
        yield from check_file_system(stores.files, timeout)
        yield from check_drained(stores.files, settings.leadership.contender, timeout)
        for job in jobs:
            yield from check_job_directory(stores.files, job, timeout, settings.leadership.timing.long_ttl_ms, consent)
            yield from check_outputs(stores, job, timeout)
        for root in roots_of(stores.files.uri):
            yield from check_namenodes(root, settings.stores.webhdfs_ca)
        yield from check_zookeeper(settings, stores.zookeeper)
        if settings.leadership.borrows_session:
            yield check_lender(stores.snapshots)
    finally:
        stores.close()
    yield from check_spark_settings(os.environ)
    yield from check_host(
        settings.leadership.timing.drift,
        settings.stores.kerberos_keytab,
        kerberos=hadoop().get("hadoop.security.authentication") == "kerberos",
    )


def _check_settings(gathered: Gathered) -> Iterator[Finding]:
    given = [f"{name} ({source})" for name, source in gathered.sources.items() if source != DEFAULT]
    yield ok("settings", f"Given: {', '.join(given) or 'none'}. `ha host config` prints all of them.")
    if traits(gathered.settings.stores.files).local:
        yield warning(
            "settings",
            f"files is {gathered.settings.stores.files} ({gathered.sources['files']}): it guards this host alone.",
            "For more than one host set `files` to hdfs://.",
        )
    for root in filter(lambda each: traits(each).address, roots_of(gathered.settings.stores.files)):
        if not _JAVAS_HOST.fullmatch(host := split(root).hostname or ""):
            found = f"files is {root} ({gathered.sources['files']}): Spark takes no host such as {host}."
            yield failed(
                "settings", found, "Give it a name of letters, digits, hyphens and dots alone, or its address."
            )
    for each in exposures(gathered.settings):
        found, _, remedy = each.rpartition(": ")
        yield warning("credentials", f"{found}.", remedy)


def check_drained(files: BoundedFiles, contender: str, timeout: float) -> Iterator[Finding]:
    """Yield whether the host is drained; nothing if the file system does not answer, which is another finding."""
    with suppress(StoreError):
        order = bar_of(files.call("drained", drained, timeout), contender)
        if order is not None and order.until > wall():
            yield warning(
                "drained",
                f"{contender} is {order}: it takes nothing over.",
                f"`ha host undrain {order.contender}` ends it.",
            )
        else:
            yield ok("drained", f"{contender} may lead.")
