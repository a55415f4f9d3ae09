"""Gone inputs: which files that a query has read are no longer where they were, so that nothing reads them again."""

from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import groupby
from urllib.parse import unquote, urlsplit

import msgspec

from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, StoreError
from store.traits import traits

MOST_FOLDERS = 200  # that are listed
LIST_S = 20.0


class GoneInputs(msgspec.Struct, frozen=True):
    """Of the files that a query has read after a batch."""

    read: int = 0  # how many they are
    gone: int = 0  # those that are not there
    first: str = ""  # the URI of one of these
    unknown: int = 0  # those that could not be looked for
    unread: str = ""  # what would name more of them and could not be read


def gone_inputs(open_root: Callable[[str], BoundedFiles], here: str, files: Iterable[str]) -> GoneInputs:
    """Look for files, by their URIs as Spark notes them; one list for each of their folders."""
    # open_root: opens one directory; the caller closes it.
    # here: URI of the job's own store. Files of a host are looked for only if the job is one of this host.
    read = sorted(files)
    gone, first, unknown = 0, "", 0
    for number, (folder, group) in enumerate(groupby(read, lambda each: each.rpartition("/")[0])):
        names = [unquote(each.rpartition("/")[2]) for each in group]
        there = _names(open_root, _plain(folder)) if number < MOST_FOLDERS and _reached(folder, here) else None
        if there is None:
            unknown += len(names)
            continue
        lost = [each for each in names if each not in there]
        gone += len(lost)
        first = first or (f"{_plain(folder)}/{lost[0]}" if lost else "")
    return GoneInputs(len(read), gone, first, unknown)


def _reached(folder: str, here: str) -> bool:
    return not traits(folder).local or traits(here).local


def _plain(folder: str) -> str:
    """Return a folder's URI with its path as it is: Spark writes it percent-encoded."""
    parts = urlsplit(folder)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def _names(open_root: Callable[[str], BoundedFiles], folder: str) -> set[str] | None:
    """Return the names in a folder, none if there is no such folder; None if that cannot be known."""
    try:
        with closing(open_root(folder)) as files:
            return {each.name for each in files.call("list", lambda each: each.list(""), LIST_S)}
    except NotFound:
        return set()
    except (StoreError, Invalid):
        return None
