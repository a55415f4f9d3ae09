"""What a fenced driver's errors mean: Spark says that a path is not there, and not who took it away."""

from collections.abc import Iterator

from ha.leadership import Leadership
from leader.errors import NotLeader
from store.errors import StoreError

_DEEPEST = 20
"""Causes of an error that are looked at; a chain of them may be a ring."""


def explain(error: BaseException, leadership: Leadership) -> NotLeader | None:
    """Return the error that says in one sentence that a driver was fenced, by whom, and which epoch it is now.

    Args:
        error: what a query, Spark, or a function of ``foreachBatch`` has raised.
        leadership: under which it ran.

    Returns:
        ``Fenced`` if the error is about the leader directory and another leader has taken that; ``NotLeader`` if it is
        and no store says who leads; None for every other error: the fence is not its cause. To be raised from it.
    """
    if not any(_about(text, leadership) for text in _texts(error)):
        return None
    try:
        return leadership.fenced_by()
    except StoreError as unknown:
        return NotLeader(
            f"Epoch {leadership.epoch} of job {leadership.job!r} may have been fenced, and HDFS does not say by whom: "
            f"{unknown}"
        )


def _about(text: str, leadership: Leadership) -> bool:
    return leadership.directory.rpartition("/")[2] in text or "leader.errors.Fenced" in text


def _texts(error: BaseException) -> Iterator[str]:
    """What an error and its causes say, with what Spark says of its own."""
    here: BaseException | None = error
    for _ in range(_DEEPEST):
        if here is None:
            return
        yield f"{type(here).__module__}.{type(here).__name__}"
        try:
            yield str(here)
            yield str(getattr(here, "desc", ""))
            yield str(getattr(here, "stackTrace", ""))
        except Exception:  # noqa: BLE001  # py4j asks the JVM for the text, which may be gone
            return
        here = here.__cause__ or here.__context__
