"""Places of savepoints, and what else the arguments of a request may say, as texts."""

from collections.abc import Iterable, Mapping

from leader.errors import InvalidName, InvalidSettings
from leader.layout.names import check_word
from store.traits import traits

TO, TIMEOUT, DRAIN, FROM, DISCARD = "to", "timeout", "drain", "from", "discard_newer"
PARTIAL = "partial"

TIMEOUT_S = 600.0  # time-out of a savepoint, unless somebody says otherwise: Flink's for a checkpoint
HIDDEN = "_"  # the names of savepoints that are no whole ones begin with it

LONGEST_S = 7 * 86_400.0

LONGEST = 4096  # characters of a URI


def check_arguments(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of a request if a leader can carry them out; without those that are empty."""
    # InvalidName: one of them says what cannot be.
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
    """Return where a savepoint is, if that can be: a URI, or the name of one of a job's own."""
    # `where`: what was given. `uri`: whether only a URI will do.
    # InvalidName: it cannot.
    _, found, path = where.partition("://")
    if found:
        name = path.rstrip("/").rpartition("/")[2]
        known = any(traits(where)) and not {".", ".."} & {*path.split("/")}
        if known and name and name[0] != HIDDEN and len(where) <= LONGEST:
            return where
    elif not uri:
        return check_word(where, "a savepoint")
    raise InvalidName(
        f"{where!r} is no place of a savepoint: give a new directory, as hdfs://, webhdfs:// or file://, whose name "
        "does not begin with an underscore, and without '.' and '..'."
    )


def check_allowed(arguments: Mapping[str, str], roots: Iterable[str]) -> None:
    """Check that checked arguments name no place outside of the job and of these directories."""
    # InvalidSettings: they do.
    for where in (arguments.get(name, "") for name in (TO, FROM)):
        if "://" in where and not any(f"{where}/".startswith(f"{root.rstrip('/')}/") for root in roots):
            raise InvalidSettings(
                f"{where!r} is below no directory that http_savepoint_roots names: set it, leave the place out, or use "
                "the command line."
            )
