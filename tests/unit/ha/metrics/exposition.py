"""The text that Prometheus would read, and a lint by its conventions."""

import re
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

OURS = "ha_"

_NAME = re.compile(r"ha(?:_[a-z0-9]+)+")
_LABEL = re.compile(r"[a-z]+(?:_[a-z]+)*")
_NO_BASE_UNIT = re.compile(r"_(?:ms|millis|milliseconds|minutes|hours|kb|mb|percent)(?:_|$)")
_TAKEN = frozenset({"job", "instance", "le", "quantile"})
"""Labels that Prometheus itself sets."""


class Exposition:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.families = [
            each
            for each in text_string_to_metric_families(generate_latest(registry).decode())
            if each.name.startswith(OURS)
        ]

    def value(self, name: str, /, **labels: str) -> float:
        """The value of one sample; 0 if there is none."""
        return next(
            (
                sample.value
                for family in self.families
                for sample in family.samples
                if sample.name == name and sample.labels == labels
            ),
            0.0,
        )

    @property
    def names(self) -> set[str]:
        """As the documentation calls them: counters with their suffix."""
        return {shown_name(family) for family in self.families}

    def labels(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for family in self.families:
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
        return found


def shown_name(family: Metric) -> str:
    """The name as queries have it; the parser takes a counter's suffix away."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def faults(families: Iterable[Metric]) -> Iterator[str]:
    """The breaks of the conventions in these: https://prometheus.io/docs/practices/naming/."""
    for family in families:
        name = shown_name(family)
        if not _NAME.fullmatch(name):
            yield f"{name} is no snake case, or not of this project"
        if not family.documentation.endswith("."):
            yield f"{name} does not say in sentences what it means"
        if _NO_BASE_UNIT.search(name):
            yield f"{name} is not in a base unit"
        if family.type not in {"counter", "gauge", "histogram"}:
            yield f"{name} has the type {family.type}"
        if family.type != "counter" and re.search(r"_(?:total|count|sum|bucket|created|info)$", name):
            yield f"{name} has the suffix of something else"
        if family.type == "histogram" and not name.endswith("_seconds"):
            yield f"{name} has no unit"
        if re.search(r"(?:Time|Seconds) ", family.documentation[:8]) and not name.endswith("_seconds"):
            yield f"{name} is a time without its unit"
        yield from _faulty_labels(name, family)


def _faulty_labels(name: str, family: Metric) -> Iterator[str]:
    own: set[str] = set()
    for sample in family.samples:
        own |= sample.labels.keys() - ({"le"} if family.type == "histogram" else set())
        if sample.labels and any(not value for value in sample.labels.values()):
            yield f"{name} has an empty label in {sample.labels}"
    for label in sorted(own):
        if label in _TAKEN:
            yield f"{name} has the label {label}, which Prometheus sets"
        if not _LABEL.fullmatch(label):
            yield f"{name} has the label {label}, which is no snake case"


def labels_of(family: Metric) -> set[str]:
    found: set[str] = set()
    for sample in family.samples:
        found |= sample.labels.keys()
    return found - {"le"}
