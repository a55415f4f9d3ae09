"""Contract: whether a store's names are the compare-and-swap that all rests on, tried with a few renames.

A driver can be right and its server wrong: a gateway drops an option, a mount replaces where it should refuse. Two
processes would then be granted one job, and nobody would notice. So whoever wants to lead tries the store before.
"""

import uuid
from contextlib import suppress

from store.errors import AlreadyExists, Invalid, NotEmpty, NotFound, StoreError
from store.files import Files

TRIED = ".tried-"  # begins the names with which a store is tried; no job's name begins with a dot


def fresh(folder: str = "") -> str:
    """Return a name to try a store with, at its root or in a folder."""
    return f"{folder}/{TRIED}{uuid.uuid4()}".lstrip("/")


def broken(files: Files, name: str) -> str:
    """Return in one sentence which promise about renames the store breaks; empty if it keeps them.

    It makes and takes away two entries whose names begin with ``name``, one after the other, by eight operations. So
    it costs eight requests over RPC and ten over WebHDFS; after an error or a breach what is left is deleted by two
    more. An answer that is unknown is raised, as is a refusal that says nothing about renames.
    """
    old, new = f"{name}-a", f"{name}-b"
    try:
        _try(files, old, new)
    except StoreError as error:
        for each in (old, new):
            with suppress(StoreError):  # `ha host doctor` deletes what is left
                files.delete(each, recursive=True)
        if not isinstance(error, _Breach):
            raise
        return str(error)
    return ""


class _Breach(StoreError):
    """A promise is broken."""


def _try(files: Files, old: str, new: str) -> None:
    _rename(files, old, new, NotFound, "a rename of what is not there")  # first: it costs a bad gateway nothing
    files.make_directory(old)
    _rename(files, old, new, None, "a rename to a free name")
    _rename(files, old, new, NotFound, "the same rename once more")
    files.make_directory(old)
    _rename(files, old, new, AlreadyExists, "a rename onto an existing directory")
    for each in (new, old):
        try:
            files.delete(each)
        except (NotFound, NotEmpty) as error:  # it was not renamed, or one was moved into the other
            raise _breach(files, "the directories were not where the answers had said", error) from error


def _rename(files: Files, source: str, target: str, wanted: type[StoreError] | None, what: str) -> None:
    said: StoreError | None = None
    try:
        files.rename(source, target)
    except Invalid as error:  # the driver has found out by itself, and says what to do
        raise _Breach(str(error)) from error
    except (NotFound, AlreadyExists) as error:
        said = error
    if not isinstance(said, wanted or type(None)):
        raise _breach(files, f"{what} was {'done' if said is None else 'refused'}", said)


def _breach(files: Files, found: str, said: StoreError | None) -> _Breach:
    why = f" ({said})" if said is not None else ""
    return _Breach(
        f"{files.uri} can hold no jobs, because two contenders could lead there: {found}{why}; let `files` name another"
        " file system"
    )
