"""Answers that leaders have published, read from the changes of the file system.

Readers are judged by this. So it shares nothing with :mod:`leader.layout.information`, by which they read: a mistake
there would otherwise be right by definition.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ha.history.events import Event, Stored

Endpoints = tuple[tuple[str, str], ...]  # names and addresses, sorted

Version = tuple[str, str]  # a leader directory's name, and the number of a publication below it


class PublishedAnswer(NamedTuple):
    """An answer, and since when all its parts are in the file system."""

    since: float
    epoch: int  # this and the session id are those of the leader directory
    session_id: str
    endpoints: Endpoints


def published_answers(events: Sequence[Event]) -> Iterator[PublishedAnswer]:
    """Yield each answer of one job as soon as the last of its entries has been made."""
    # An entry counts for the directory in which it was made, if it bears the directory's epoch.
    parts: dict[Version, dict[str, str]] = {}
    for event in events:
        if not isinstance(event, Stored) or event.operation not in ("make", "rename"):
            continue
        directory, _, entry = (event.target or event.path).partition("/record/endpoint~")
        epoch, _, session_id = directory.partition("-")
        fields = entry.split("~", 3)
        if len(fields) != 4 or fields[0] != epoch:  # noqa: PLR2004  # epoch, version, count, name=address
            continue
        _, version, count, endpoint = fields
        name, _, address = endpoint.partition("=")
        found = parts.setdefault((directory, version), {})
        found[name] = unquote(address.replace("_", "%"))
        if len(found) == max(1, int(count)):
            endpoints = tuple(sorted(found.items())) if int(count) else ()
            yield PublishedAnswer(event.at, int(epoch), session_id, endpoints)
