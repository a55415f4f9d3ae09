"""Arguments of the requests about savepoints, as texts, and what they may say."""

from collections.abc import Mapping

from ha.spark.savepoints.places import HIDDEN
from leader.errors import InvalidName
from leader.layout.names import check_word

TO, TIMEOUT, DRAIN, FROM, DISCARD = "to", "timeout", "drain", "from", "discard_newer"

TIMEOUT_S = 600.0
"""Time-out of a savepoint, unless somebody says otherwise: Flink's for a checkpoint."""

LONGEST_S = 7 * 86_400.0

LONGEST = 4096
"""Characters of a URI."""


def check_arguments(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of a request if a leader can carry them out; without those that are empty.

    Raises:
        InvalidName: one of them says what cannot be.
    """
    given = {name: text for name, text in arguments.items() if text}
    for name in (TO, FROM):
        if name in given:
            check_where(given[name], uri=name == TO)
    if TIMEOUT in given:
        try:
            seconds = float(given[TIMEOUT])
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= LONGEST_S:
            raise InvalidName(
                f"{given[TIMEOUT]!r} is no time-out of a savepoint: give seconds, up to {LONGEST_S:,.0f}."
            )
    return given


def check_where(where: str, *, uri: bool = False) -> str:
    """Return where a savepoint is, if that can be: a URI, or the name of one of a job's own.

    Args:
        where: what was given.
        uri: whether only a URI will do.

    Raises:
        InvalidName: it cannot.
    """
    scheme, found, path = where.partition("://")
    if found:
        name = path.rstrip("/").rpartition("/")[2]
        if scheme in ("file", "hdfs", "webhdfs", "swebhdfs") and name and name[0] != HIDDEN and len(where) <= LONGEST:
            return where
    elif not uri:
        return check_word(where, "a savepoint")
    raise InvalidName(
        f"{where!r} is no place of a savepoint: give a new directory, as hdfs://, webhdfs:// or file://, whose name "
        "does not begin with an underscore."
    )
