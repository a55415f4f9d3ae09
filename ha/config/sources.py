"""Sources of settings: arguments come before the environment, that before ``ha.toml``, that before the defaults.

Every setting is validated before anything starts. A name that is not a setting is an error, in each of these places.
"""

import os
import re
import socket
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ha.config.setting import SettingReference, nearest, seconds_of, shown
from ha.config.settings import Settings, reference
from ha.placement.place import SEPARATOR, roots_of
from leader.errors import InvalidSettings
from leader.layout.hosts import own_name
from leader.layout.names import check_word

CONFIG_FILE = "ha.toml"

MAX_FILE_BYTES = 1_000_000  # a longer file is not one with settings

KINDS = {str: "text", float: "a number", int: "a whole number", bool: "true or false"}
"""The types of settings, as error messages name them."""

_UNIQUE = os.urandom(3).hex()  # containers that share a host's name have one process id, too: each is process 1

DEFAULT = "default"  # the source of a setting that was given nowhere

DURATION = "a number of seconds, or a duration such as '10 s', '1 min' or '500 ms'"

PREFIX = "HA_"
OWN = frozenset({
    # The file of settings; what a dry run tells the program; what sandbox, containers, drills and tests use.
    "HA_CONFIG", "HA_PREFLIGHT", "HA_CLOCKS", "HA_COMPOSE", "HA_DRILLS", "HA_DRILLS_FOLDER", "HA_NET", "HA_PUBLISHED",
    "HA_RACES", "HA_SANDBOX_KAFKA", "HA_SANDBOX_KAFKA_JARS", "HA_SANDBOX_WEBHDFS", "HA_STACK", "HA_TEST_SANDBOX",
    "HA_TEST_SECURED_SANDBOX",
})  # fmt: skip
"""Variables of this package that are no settings, besides those of a program: :mod:`ha.program.variables`."""

_KUBERNETES = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
"""Kubernetes gives each container such variables for each service: HA_UI_SERVICE_HOST for a service called ha-ui."""


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table ``[groups.NAME]`` of ``ha.toml``: several roots that hold jobs together."""

    files: list[str]  # their URIs
    placement: str = ""  # the policy for new jobs; empty for the setting ``placement``


Known = Mapping[str, SettingReference]  # all settings by name


class Gathered(msgspec.Struct, frozen=True):
    """The settings, and where each came from."""

    settings: Settings  # all of them
    # of each setting, by its field: a variable's name, a file's, what the caller calls its arguments, or
    # :data:`DEFAULT`
    sources: Mapping[str, str]


def load(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    source: str = "the arguments",
) -> Settings:
    """Gather the settings."""
    # `arguments`: settings from code or flags; the value None means "not given". `environment`: defaults to the
    # process's. `source`: what an error message calls the arguments.
    # InvalidSettings: a setting is unknown, of the wrong kind, or clashes with another; the message says which one, and
    # where it was found. InvalidName: the contender's name is not allowed.
    return gather(arguments, environment, source=source).settings


def gather(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    source: str = "the arguments",
) -> Gathered:
    """Gather the settings, and say where each came from; arguments and errors are those of :func:`load`."""
    environment = os.environ if environment is None else environment
    known = {each.name: each for each in reference()}
    _check_variables(environment, [each.variable for each in known.values()])
    from_file, groups = _from_file(environment)
    values: dict[str, Any] = {}
    sources = {each.name: DEFAULT for each in known.values()}
    file = _printable(_config_path(environment))
    for where, found in (
        (file, from_file),
        ("the environment", _from_environment(environment)),
        (source, {name: value for name, value in (arguments or {}).items() if value is not None}),
    ):
        values.update(_read(found, where, known))
        sources.update((name, known[name].variable if where == "the environment" else where) for name in found)
    if (group := groups.get(str(values.get("files")))) is not None:
        values["files"] = SEPARATOR.join(group.files)
        if group.placement and sources["placement"] in (DEFAULT, file):
            values["placement"], sources["placement"] = group.placement, file
    elif groups and ":" not in (given := str(values.get("files", ":"))):
        raise InvalidSettings(f"files is {shown(given)}: {file} has no such group, but {', '.join(sorted(groups))}.")
    values["files"] = values.get("files") or _default_files(environment)
    values["contender"] = check_word(values.get("contender") or _default_contender(), "a contender")
    settings = Settings.of(**values)
    settings.validate()
    return Gathered(settings, sources)


def _check_variables(environment: Mapping[str, str], settings: Collection[str]) -> None:
    """Refuse variables that begin with HA_ and mean nothing here: a misspelt HA_FILES would mean a local store."""
    # `environment`: of the process; a variable that is empty is not set. `settings`: the variables of all settings.
    # InvalidSettings: there is one; the message suggests the one that was meant.
    given = {name for name, value in environment.items() if name.startswith(PREFIX) and value}
    for name in sorted(given - OWN - set(settings)):
        from ha.program.variables import PROGRAM  # noqa: PLC0415  # most processes are no programs of a sidecar

        if name not in PROGRAM and not _KUBERNETES.fullmatch(name):
            close = nearest(name, [*settings, "HA_CONFIG"])
            hint = f"did you mean {close[0]}?" if close else "`ha host config` lists all settings."
            raise InvalidSettings(
                f"{name} in the environment is not a setting: {hint} If it is another program's, unset it for this one."
            )


def known_groups() -> list[list[str]]:
    """Return the roots of each group that ``ha.toml`` or the environment names, whatever a command was given."""
    # InvalidSettings: the file has another form.
    from_file, groups = _from_file(os.environ)
    given = [str(found.get("files", "")) for found in (from_file, _from_environment(os.environ))]
    return [*(each.files for each in groups.values()), *(roots_of(each) for each in given if SEPARATOR in each)]


def _read(values: Mapping[str, Any], where: str, known: Known) -> dict[str, Any]:
    """Return the values, with durations as seconds."""
    # InvalidSettings: a value is not of a setting, or of the wrong kind; the message says which, and ``where`` it was
    # found.
    found = {}
    for key, value in values.items():
        if key not in known:
            close = nearest(key, known)
            hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}."
            raise InvalidSettings(f"{shown(key)} in {where} is not a setting: {hint}")
        setting = known[key]
        is_duration = setting.unit == "seconds"
        seconds = seconds_of(value) if is_duration and isinstance(value, str) else None
        found[key] = value if seconds is None else seconds
        try:
            msgspec.convert(found[key], setting.kind, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for bytes that are not UTF-8
            kind = DURATION if is_duration else KINDS[setting.kind]
            raise InvalidSettings(f"{key} in {where} is {shown(value)}: it must be {kind}.") from None
    return found


def _config_path(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HA_CONFIG") or CONFIG_FILE)


def _from_file(environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Group]]:
    """Read ``ha.toml``; returns its values by their names there, and its groups of roots by theirs."""
    # There need not be such a file, unless HA_CONFIG names one.
    # InvalidSettings: it cannot be read, or is not TOML.
    path = _config_path(environment)
    where = _printable(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        if environment.get("HA_CONFIG"):
            raise InvalidSettings(f"HA_CONFIG names {where}, and there is no such file.") from None
        return {}, {}
    except OSError as error:
        raise InvalidSettings(f"{where} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a zero character, or one that the locale cannot encode
        raise InvalidSettings(f"HA_CONFIG names {where}, which cannot be a path ({error}).") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidSettings(f"{where} is too long for a settings file: it has more than {MAX_FILE_BYTES:,} bytes.")
    import tomllib  # noqa: PLC0415  # Python workers have no such file

    try:
        table = tomllib.loads(data.decode("utf-8-sig"))  # some editors begin a file with a mark
        groups = table.pop("groups", {})
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{where} is not UTF-8 from byte {error.start} on: save it in UTF-8.") from error
    except ValueError as error:  # tomllib's own, or of an integer too long for Python
        raise InvalidSettings(f"{where} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InvalidSettings(f"{where} is not valid TOML: its values are nested too deeply.") from error
    return table, _groups(groups, where)


def _groups(table: object, where: str) -> dict[str, Group]:
    """Read the tables ``[groups.NAME]``. InvalidSettings: one has another form."""
    try:
        groups = msgspec.convert(table, dict[str, Group])
    except msgspec.ValidationError as error:
        raise InvalidSettings(
            f'A group in {where} has another form ({error}): write [groups.NAME] with files = ["URI", "URI"], and '
            "placement if it is to differ."
        ) from None
    for name, group in groups.items():
        check_word(name, "a group")
        if len(group.files) < 2 or any(SEPARATOR in each or "://" not in each for each in group.files):  # noqa: PLR2004
            raise InvalidSettings(f"Group {name!r} in {where} must have a list `files` of at least two URIs.")
    return groups


def _printable(path: Path) -> str:
    """Write a path for an error message; one that would break the line or command a terminal is quoted."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {each.name: value for each in reference() if (value := environment.get(each.variable))}


def _default_files(environment: Mapping[str, str]) -> str:
    state = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    # Not Path.as_uri(): Hadoop's URIs have no escapes, so a %20 would be three letters of a directory's name.
    return f"file://{Path(state, 'hybrid-ha', 'jobs').absolute()}"


def _default_contender() -> str:
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).strip("-.")[:40] or "host"
    return own_name(host, os.getpid(), _UNIQUE)
