"""The log of a process: one sentence for each decision, as text for people or as JSON for machines.

Its first lines name the stores, the places of the settings, and secrets that others can read.
"""

import json
import logging
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ha.config.settings import Settings
from ha.config.sources import Gathered
from ha.listening.throttle import Throttle
from store.errors import NotSent, Unknown
from store.traits import traits

SECRETS = ("zookeeper_credentials", "kerberos_keytab", "http_read_tokens", "http_operate_tokens", "jobmaster_token")
"""Settings that name a file with a secret."""

KEYS = {
    "zookeeper_tls_key": "zookeeper_tls_certificate",
    "http_key": "http_certificate",
    "jobmaster_key": "jobmaster_certificate",
}
"""Settings that name a file with a private key, and those whose file has the key if there is none of its own."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

FORMATS = ("text", "json")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class _Outages(Throttle):
    """Throttles what only repeats that a store does not answer; the process says that itself, with its length."""

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(isinstance(each, Unknown | NotSent) for each in given) or super().filter(record)


def configure(*, level: str, style: str) -> None:
    """Write this package's messages to standard error."""
    # `level`: lowest level that is logged, such as ``INFO``. `style`: one of :data:`FORMATS`.
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if style == "json" else logging.Formatter("%(asctime)s %(levelname)-7s %(message)s")
    handler.setFormatter(formatter)
    handler.addFilter(_Outages())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ha").setLevel(level)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # our own messages report the same, once


def exposures(settings: Settings) -> Iterator[str]:
    """Yield one sentence, with what to do, for each file with credentials that other users can read or replace."""
    # It skips a file or directory that it cannot look at: opening that will fail with a reason.
    values = settings.flat()
    named = {name: values[name] for name in SECRETS}
    named |= {key: values[key] or values[certificate] for key, certificate in KEYS.items()}
    for name, path in named.items():
        if path:
            yield from _of_file(name, Path(path))


def _of_file(name: str, path: Path) -> Iterator[str]:
    mode = _mode(path)
    if mode & OTHERS:
        yield f"{name}: other users may use {path} (mode {mode:04o}): chmod 600 {path}"
    # A directory with the sticky bit, as /tmp, lets others add files, but not replace this one.
    mode = _mode(path.parent)
    if mode & OTHERS_WRITE and not mode & stat.S_ISVTX:
        yield f"{name}: other users may replace {path} (mode {mode:04o} of {path.parent}): chmod go-w {path.parent}"


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


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
