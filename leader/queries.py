"""The checkpoint directories of a job's queries: shown, or put into the trash, each by one rename.

Nobody may run the query meanwhile, so whoever does this leads the job. A replacement is two renames: if nobody comes
to do the second, the query has no checkpoint, and would begin anew.
"""

import uuid

from leader.names import SPARK, TRASH
from leader.own import OwnDirectory
from store.errors import NotFound

PREFIX = "query="
"""What a query's directory is called in the trash, before the query's name."""


class Queries:
    """The leader's hand on its queries' checkpoint directories."""

    def __init__(self, own: OwnDirectory) -> None:
        """Touch nothing yet; ``own`` is the leader's directory."""
        self._own = own

    def has(self, query: str) -> bool:
        """Whether the query has one.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        return any(each.name == query for each in self._own.list(SPARK))

    def show(self, source: str, query: str) -> None:
        """Give a directory that was prepared elsewhere its place.

        Args:
            source: its path in the leader directory.
            query: the query's name.

        Raises:
            AlreadyExists: the query has one.
            Fenced: another leader has taken over.
            NotFound: it is not there.
            StoreError: it was refused, or nobody knows.
        """
        self._own.make_folder(SPARK)
        self._own.rename(source, f"{SPARK}/{query}")

    def discard(self, query: str) -> str:
        """Move the query's directory into the trash, and return what it is called there.

        Raises:
            Fenced: another leader has taken over.
            NotFound: the query has none.
            StoreError: it was refused, or nobody knows.
        """
        name = uuid.uuid4().hex[:8]
        self._own.make_folder(TRASH)
        self._own.make_folder(f"{TRASH}/{name}")
        self._own.settle(f"{SPARK}/{query}", f"{TRASH}/{name}/{PREFIX}{query}")
        return name

    def restore(self, query: str) -> str:
        """Put what was discarded last back into its place; what is there goes into the trash, so this can be undone.

        Returns:
            What it was called in the trash.

        Raises:
            Fenced: another leader has taken over.
            NotFound: the trash holds none.
            StoreError: it was refused, or nobody knows.
        """
        found = [entry for entry in self._own.list(TRASH) if self.discarded(entry.name) == query]
        if not found:
            raise NotFound(f"The trash of job {self._own.job!r} holds no checkpoint of query {query!r}.")
        name = max(found, key=lambda entry: (entry.modified_ms, entry.name)).name
        if self.has(query):
            self.discard(query)
        self.show(f"{TRASH}/{name}/{self._entry(name)}", query)
        self._own.delete(f"{TRASH}/{name}")
        return name

    def discarded(self, trash: str) -> str:
        """Return the query whose directory is in that part of the trash; empty if none is.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        return self._entry(trash).removeprefix(PREFIX).partition("~")[0]

    def _entry(self, trash: str) -> str:
        names = (entry.name for entry in self._own.list(f"{TRASH}/{trash}"))
        return next((name for name in names if name.startswith(PREFIX)), "")
