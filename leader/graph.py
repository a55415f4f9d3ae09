"""The job's graph: what is to be run, as its program has written it down. One, in versions."""

from leader.names import GRAPH
from leader.own import OwnDirectory
from leader.shelf import Kept, Shelf


class Graph:
    """The leader's hand on its job's graph; safe to use from several threads."""

    def __init__(self, own: OwnDirectory) -> None:
        """Touch nothing yet; ``own`` is the leader's directory."""
        self._shelf = Shelf(own, GRAPH, "a graph")

    def load(self) -> Kept | None:
        """Return the graph and its version; None if there is none.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer, or the graph cannot be read; nothing older is read for it.
        """
        return self._shelf.load(GRAPH)

    def put(self, data: bytes, expected: int = 0) -> int:
        """Store a graph in the place of the version that is expected, and return the new one's version.

        Args:
            data: the graph, at most :data:`leader.own.MAX_BYTES`.
            expected: the version that was loaded or put before; 0 if there is to be none.

        Raises:
            Conflict: another version is there; after an outcome that stayed unknown, perhaps this one. Load it.
            Fenced: another leader has taken over.
            Invalid: it is too long.
            StoreError: it was refused, or it stayed unknown whether it was stored.
        """
        return self._shelf.put(GRAPH, data, expected)

    def remove(self) -> None:
        """Remove the graph; no error if there is none.

        Raises:
            Fenced: another leader has taken over.
            StoreError: it was refused, or it stayed unknown whether it was removed.
        """
        self._shelf.remove(GRAPH)
