"""QueryCheckpoints: the checkpoint directories of a job's queries, shown or moved to the trash, each by one rename.

The query must not run meanwhile, so only the job's leader does this. A replacement takes two renames. If a crash
prevents the second one, the query has no checkpoint and would start from the beginning.
"""

import uuid

from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK, TRASH
from store.errors import NotFound

PREFIX = "query="  # before the query's name in the name of its directory in the trash


class QueryCheckpoints:
    """The checkpoint directories of a job's queries, for its leader."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory

    def has(self, query: str) -> bool:
        """Whether the query has a checkpoint directory."""
        return any(each.name == query for each in self._directory.list(SPARK))

    def show(self, source: str, query: str) -> None:
        """Move a complete directory, a path in the leader directory, to the place of the query's checkpoint.

        Raises:
            AlreadyExists: the query has a checkpoint directory.
            NotFound: the source does not exist.
        """
        self._directory.make_folder(SPARK)
        self._directory.rename(source, f"{SPARK}/{query}")

    def discard(self, query: str) -> str:
        """Move the query's directory to the trash, and return its name there.

        Raises:
            NotFound: the query has no checkpoint directory.
        """
        name = uuid.uuid4().hex[:8]
        self._directory.make_folder(TRASH)
        self._directory.make_folder(f"{TRASH}/{name}")
        self._directory.commit(f"{SPARK}/{query}", f"{TRASH}/{name}/{PREFIX}{query}")
        return name

    def restore(self, query: str) -> str:
        """Put back the directory that was discarded last, and return its name in the trash; the present one goes there.

        Raises:
            NotFound: the trash holds no directory of this query.
        """
        found = [entry for entry in self._directory.list(TRASH) if self.discarded(entry.name) == query]
        if not found:
            raise NotFound(f"The trash of job {self._directory.job!r} holds no checkpoint of query {query!r}.")
        name = max(found, key=lambda entry: (entry.modified_ms, entry.name)).name
        if self.has(query):
            self.discard(query)
        self.show(f"{TRASH}/{name}/{self._entry(name)}", query)
        self._directory.delete(f"{TRASH}/{name}")
        return name

    def discarded(self, trash: str) -> str:
        """Return the query whose directory is in this folder of the trash; empty if there is none."""
        return self._entry(trash).removeprefix(PREFIX).partition("~")[0]

    def _entry(self, trash: str) -> str:
        names = (entry.name for entry in self._directory.list(f"{TRASH}/{trash}"))
        return next((name for name in names if name.startswith(PREFIX)), "")
