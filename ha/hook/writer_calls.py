"""Writer calls: what a program has said to a ``DataStreamWriter`` of PySpark, which tells nobody."""

from __future__ import annotations

import functools
from typing import Any

NOTED = (
    "format", "option", "options", "outputMode", "queryName", "partitionBy", "clusterBy", "trigger", "foreachBatch",
    "foreach",
)  # fmt: skip


def note_calls(writer: Any) -> None:
    """Have a class of writers note what they are told."""
    writer.ha_noted = ()
    for name in NOTED:
        if hasattr(writer, name):  # an older PySpark has no clusterBy
            setattr(writer, name, _noting(name, getattr(writer, name)))


def _noting(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def noted(self: Any, *given: Any, **named: Any) -> Any:
        self.ha_noted = (*self.ha_noted, (name, given, named))
        return method(self, *given, **named)

    return noted


class WriterCalls:
    """What a program has said to a writer."""

    def __init__(self, noted: Any) -> None:
        self.options: dict[str, str] = {}
        self.format, self.name, self.mode, self.function = "", "", "", None
        self.columns: list[str] = []
        self.others: set[str] = set()
        for method, given, named in noted:
            values = [*given, *named.values()]
            if method == "option":
                self.options[str(named.get("key", given[0] if given else "")).lower()] = str(values[-1])
            elif method == "options":
                self.options.update({key.lower(): str(each) for key, each in named.items() if each is not None})
            elif method == "queryName":
                self.name = values[0]
            elif method == "outputMode":
                self.mode = str(values[0]).lower()
            elif method in ("format", "foreachBatch", "foreach"):  # the last of them counts
                self.format = {"format": str(values[0]).lower(), "foreach": method}.get(method, "")
                self.function = values[0] if method == "foreachBatch" else None
            elif method == "partitionBy":
                self.columns = list(values[0]) if values and isinstance(values[0], (list, tuple)) else values
            elif method == "trigger":
                self.others.update(key for key, each in named.items() if each)
            else:
                self.others.add(method)
