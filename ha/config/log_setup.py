"""Logging setup: one sentence for each decision, as text for people or as JSON for machines."""

import json
import logging
import sys
import time

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


def configure(*, level: str, style: str) -> None:
    """Write this package's messages to standard error.

    Args:
        level: lowest level that is logged, such as ``INFO``.
        style: one of :data:`FORMATS`.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if style == "json" else logging.Formatter("%(asctime)s %(levelname)-7s %(message)s")
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ha").setLevel(level)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # our own messages report the same, once
