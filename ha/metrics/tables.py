"""Tables of metrics whose values are read when Prometheus asks: of each its name, its meaning and its value."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

T = TypeVar("T")

Kind = type[CounterMetricFamily] | type[GaugeMetricFamily]

Table = Mapping[str, tuple[str, Callable[[T], float | Mapping[str, float] | None]]]
"""By name: meaning, and value of one row; None if it has none, several by what is to be the last label."""


def families(
    kind: Kind, table: Table[T], labels: list[str], rows: Iterable[tuple[list[str], T]]
) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    """Yield the metrics of a table."""
    # kind: of all of them.
    # table: says what is shown.
    # labels: names of the labels; the last one is of values that a row has several of.
    # rows: the values of these labels, with what is shown.
    rows = list(rows)
    for name, (meaning, value) in table.items():
        family = kind(name, meaning, labels=labels)
        for key, row in rows:
            found = value(row)
            if isinstance(found, Mapping):
                for last, number in found.items():
                    family.add_metric([*key, last], number)
            elif found is not None:
                family.add_metric(key, found)
        yield family
