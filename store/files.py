"""The file system as the protocol sees it: a handful of atomic operations on names, the same for every driver."""

from typing import Protocol

import msgspec

MAX_COMPONENT_BYTES = 255  # of one name in UTF-8: POSIX `NAME_MAX`, `dfs.namenode.fs-limits.max-component-length`
DIRECTORY_MODE = 0o755  # permissions of directories that are made, unless something else is asked for


class Entry(msgspec.Struct, frozen=True):
    """One name in a directory."""

    name: str  # the last component of the path
    is_directory: bool  # whether it is a directory
    size: int  # length in bytes, 0 for a directory
    modified_ms: int  # the store's own time stamp, in milliseconds since 1970; it proves nothing


class Files(Protocol):
    """Atomic operations on a tree of names, relative to a root.

    A path has components joined by ``/``, no leading slash, no ``.`` or ``..``, none empty, none with a colon (HDFS
    refuses it) or a control character of ASCII, none beginning with ``.staging`` (the drivers' own files, which
    listings leave out); the empty path is the root itself. Anything else raises :class:`store.errors.Invalid`.

    Implementations raise only :class:`store.errors.StoreError`. They may block without limit, so only
    :class:`store.bounded.BoundedFiles` calls them, with a deadline. They are safe to call from several threads.
    """

    @property
    def uri(self) -> str:
        """The root's URI, as Spark and Hadoop would write it."""

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory, in no particular order; NotFound without one, Invalid for a file."""

    def make_directory(self, path: str) -> None:
        """Create one directory, unless it is there. Its parent must exist (NotFound); AlreadyExists if a file is there.

        HDFS answers the same whether it created the directory or found it; to know, it would take a second round trip.
        So nothing can be claimed with this: where exactly one must win, :meth:`rename` something into place.
        """

    def make_root(self) -> None:
        """Create the root and its parents; no error if it exists."""

    def rename(self, source: str, destination: str) -> None:
        """Rename an entry atomically, with everything below it.

        Raises:
            PermissionDenied: the user may not change one of the two directories; reported before a missing source.
            NotFound: the source, or the destination's parent, does not exist; a missing source is reported first.
            AlreadyExists: the destination exists, be it file or directory, empty or not.
        """

    def read(self, path: str, limit: int) -> bytes:
        """Return a small file's content; NotFound without one, Invalid for a directory or over ``limit`` bytes."""

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file so that readers see the old content or the new one, never a part.

        The parent must exist, and is never created along the way. After a crash a hidden half-written file may stay.

        Raises:
            NotFound: the parent does not exist.
            NotWritable: the content could not be stored, for any reason; nothing was replaced.
            Invalid: there is a directory of that name.
        """

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete an entry: NotFound without one, NotEmpty if it has entries and ``recursive`` is false."""

    def close(self) -> None:
        """Release connections and descriptors; further calls may fail."""
