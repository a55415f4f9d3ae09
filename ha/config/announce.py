"""The first line of a process: which stores it uses, and where these settings come from."""

import logging

from ha.config.exposure import exposures
from ha.config.sources import Gathered
from store.traits import traits

_log = logging.getLogger("ha")


def announce(gathered: Gathered) -> None:
    """Log which stores a process is about to use; warn if they protect a job against this host's processes only."""
    # Files with credentials that other users can read or replace are warned of, too.
    settings, sources = gathered.settings, gathered.sources
    zookeeper = f"ZooKeeper is {settings.stores.zookeeper}" if settings.stores.zookeeper else "there is no ZooKeeper"
    _log.info(
        "The jobs are in %s (%s), %s (%s).", settings.stores.files, sources["files"], zookeeper, sources["zookeeper"]
    )
    if traits(settings.stores.files).local:
        _log.warning(
            "%s guards this host alone: processes on other hosts do not see who leads here, and lead the same jobs "
            "as well. For more than one host set `files` to hdfs://.",
            settings.stores.files,
        )
    for each in exposures(settings):
        _log.warning("%s", each)
