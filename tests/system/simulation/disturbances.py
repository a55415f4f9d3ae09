"""Disturbances: when each part was disturbed. Guarantees about a reachable store hold only while it was undisturbed."""

from collections.abc import Callable
from dataclasses import dataclass, field


def place(host: str) -> str:
    """Return a host's name in plans, without the number of the process that runs there now."""
    return host.partition(".")[0]


@dataclass
class Disturbances:
    """The disturbed parts by name, with the times; disturbances of one part may overlap."""

    now: Callable[[], float]
    spans: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    _open: dict[str, list[float]] = field(default_factory=dict)

    def begin(self, what: str) -> None:
        self._open.setdefault(what, []).append(self.now())

    def end(self, what: str) -> None:
        began = self._open[what].pop()
        self.spans.setdefault(what, []).append((began, self.now()))

    def peace(self, begins: float, ends: float, *what: str) -> bool:
        """Whether none of these parts was disturbed between two times."""
        spans = [span for name in what for span in self.spans.get(name, [])]
        spans += [(began, float("inf")) for name in what for began in self._open.get(name, [])]
        return all(end <= begins or begin >= ends for begin, end in spans)
