"""Logging setup: one sentence for each decision, as text for people or as JSON for machines."""

import json
import logging
import sys
import time

from ha.listening.throttle import Throttle
from store.errors import NotSent, Unknown

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
