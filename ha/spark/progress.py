"""What Spark's progress says of a completed batch, as the metadata of its checkpoint."""

from collections.abc import Iterable
from typing import Any

import msgspec

from leader.checkpoint import MAX_ID, Metadata


class _StateOperator(msgspec.Struct, rename="camel"):
    num_rows_total: int = 0
    memory_used_bytes: int = 0


class _Source(msgspec.Struct, rename="camel"):
    end_offset: Any = None


class Progress(msgspec.Struct, rename="camel"):
    """What is wanted of Spark's ``StreamingQueryProgress``, under its names but for the case of their letters."""

    batch_id: int
    name: str | None = None
    batch_duration: int | None = None
    num_input_rows: int | None = None
    state_operators: list[_StateOperator] = []
    sources: list[_Source] = []

    @property
    def metadata(self) -> Metadata:
        """What it says of its batch; None for what it does not say."""
        stateful = bool(self.state_operators)
        return Metadata(
            duration_ms=_number(self.batch_duration),
            rows=_number(self.num_input_rows),
            state_rows=_number(sum(each.num_rows_total for each in self.state_operators)) if stateful else None,
            state_bytes=_number(sum(each.memory_used_bytes for each in self.state_operators)) if stateful else None,
            offsets=summary(source.end_offset for source in self.sources),
        )


_decoder = msgspec.json.Decoder(Progress)


def read(text: str) -> Progress:
    """Read the JSON of a ``StreamingQueryProgress``.

    Raises:
        msgspec.ValidationError: that is none.
    """
    return _decoder.decode(text)


def summary(offsets: Iterable[Any]) -> str:
    """Say shortly how far each source was read: of each topic, or whatever its offset has at the top, the sum.

    So it is as long for a thousand partitions as for one. The offsets themselves are in the query's own log of them.

    Args:
        offsets: of each source, as Spark's JSON has it: a number, an object, or a text.
    """
    return " ".join(filter(None, map(_one, offsets)))


def _one(offset: Any) -> str:
    if isinstance(offset, dict):
        return " ".join(f"{name}={_sum(value)}" for name, value in offset.items() if _sum(value) is not None)
    return "" if offset is None else str(offset)


def _sum(value: Any) -> int | None:
    """The sum of all whole numbers in it; None if there is none."""
    if isinstance(value, dict):
        found = [each for each in map(_sum, value.values()) if each is not None]
        return sum(found) if found else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_ID else None
