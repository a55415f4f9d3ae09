"""Logging: one sentence per decision, for a terminal or for a machine."""

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
    """Send this package's sentences to standard error.

    Args:
        level: least level that is shown, such as ``INFO``.
        style: one of :data:`FORMATS`.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if style == "json" else logging.Formatter("%(asctime)s %(levelname)-7s %(message)s")
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ha").setLevel(level)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # what it says, our own sentences say once
