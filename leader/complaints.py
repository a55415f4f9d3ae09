"""What a contender complains of: each failure once, until something succeeds or fails otherwise."""

from store.errors import AlreadyExists, NotFound, StoreError


class Complaints:
    """Remembers the last complaint."""

    def __init__(self) -> None:
        self._last: tuple[str, type[StoreError]] | None = None

    def clear(self) -> None:
        """Something succeeded."""
        self._last = None

    def about(self, purpose: str, error: StoreError | None) -> str | None:
        """Return a sentence to say; None if there is nothing new to complain of.

        Who was only too late has nothing to complain about. Errors are compared by their kind, because each try may
        have names of its own.
        """
        if error is None or isinstance(error, NotFound | AlreadyExists) or self._last == (purpose, type(error)):
            return None
        self._last = (purpose, type(error))
        return f"It could not {purpose}: {error}"
