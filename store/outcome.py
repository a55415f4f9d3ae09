"""Outcome: how a store call ended, as done, refused or unknown."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec

from store.errors import Refused, StoreError, Unknown

T = TypeVar("T")


class Outcome(msgspec.Struct, Generic[T], frozen=True):
    """The end of one store call."""

    value: T | None  # the store's answer; meaningless unless `error` is None
    error: StoreError | None  # why it was refused, or why its outcome is unknown; None if it was done
    started: float  # boot-clock seconds taken *before* anything was sent: promises are counted from here
    ended: float  # boot-clock seconds taken after the answer came: observations are counted from here

    @property
    def done(self) -> bool:
        """Whether the store answered that it happened."""
        return self.error is None

    @property
    def refused(self) -> bool:
        """Whether it is certain that it did not happen and never will."""
        return isinstance(self.error, Refused)

    @property
    def unknown(self) -> bool:
        """Whether it may have happened, or may still happen."""
        return isinstance(self.error, Unknown)

    def result(self) -> T:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # None is T's own None once the error is ruled out


@contextmanager
def doubts(what: str, remedy: str) -> Iterator[None]:
    """Have an outcome that stays unknown say what may have happened, after "whether", and what people do about it."""
    try:
        yield
    except Unknown as error:
        raise Unknown(f"It is not known whether {what}: {remedy}. ({error})") from error
