"""Hadoop for both HDFS drivers: its configuration files, and the meaning of its exceptions."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from store.errors import (
    AlreadyExists,
    HasSnapshots,
    Invalid,
    NoSpace,
    NotEmpty,
    NotFound,
    NotWritable,
    PermissionDenied,
    Refused,
)

MAX_LINE = 20_000
"""Characters of a message that are read: twice the longest path of HDFS and some words.

The patterns below would take hours for the many megabytes that a server which is no NameNode can send.
"""

# Hadoop's guide to ViewFs keeps the mount table in a file of its own, which core-site.xml includes.
_VARIABLE = re.compile(r"\$\{([^{}$\s]+)\}")
_ENVIRONMENT = re.compile(r"env\.([^:\-]+)(?:(:?-)(.*))?")
SUBSTITUTIONS = 20
"""Hadoop's own limit for one value."""

_INCLUDE = "{http://www.w3.org/2001/XInclude}include"

# Only exceptions that the NameNode throws before it changes anything may be here. Any other one is Unknown.
_REFUSALS: dict[str, type[Refused]] = {
    "FileNotFoundException": NotFound,
    "FileAlreadyExistsException": AlreadyExists,
    "AlreadyBeingCreatedException": AlreadyExists,
    "PathIsNotEmptyDirectoryException": NotEmpty,
    "AccessControlException": PermissionDenied,
    "AuthorizationException": PermissionDenied,
    "AuthenticationException": PermissionDenied,
    "InvalidToken": PermissionDenied,
    "NSQuotaExceededException": NoSpace,
    "DSQuotaExceededException": NoSpace,
    "QuotaByStorageTypeExceededException": NoSpace,
    "MaxDirectoryItemsExceededException": NoSpace,
    "SafeModeException": NotWritable,
    "StandbyException": NotWritable,
    "RetriableException": NotWritable,
    "ObserverRetryOnActiveException": NotWritable,
    "PathComponentTooLongException": Invalid,
    "IllegalNameException": Invalid,
    "InvalidPathException": Invalid,
    "ParentNotDirectoryException": Invalid,
    "HadoopIllegalArgumentException": Invalid,
}

# Some exceptions mean several things and only their text tells which; a plain IOException means nothing without it.
_PHRASES: tuple[tuple[str, re.Pattern[str], type[Refused]], ...] = (
    ("FileNotFoundException", re.compile(r"^Path is not a file: "), Invalid),
    ("AccessControlException", re.compile(r" \(is not a directory\)"), Invalid),
    ("SnapshotException", re.compile(r"^Concat: "), Invalid),
    ("SnapshotException", re.compile(r" is snapshottable and already has snapshots"), HasSnapshots),
    ("IOException", re.compile(r"^Source .* and destination .* must both be directories"), AlreadyExists),
    ("IOException", re.compile(r"^Rename destination .* is a directory or file under source "), Invalid),
    ("IOException", re.compile(r"^rename source cannot be the root"), Invalid),
    ("IOException", re.compile(r"^Rename of .* is not allowed, no eligible destination"), Invalid),  # a router's
    ("IOException", re.compile(r"^(rename|mkdirs|create): Pathname too long\."), Invalid),
)


def refusal(exception: str, message: str) -> Refused | None:
    """Return what a NameNode's exception means, or None if it does not prove that nothing happened."""
    # The class comes with or without its package; a stack trace after the first line of the message is left out.
    name = re.split(r"[.$]", exception[-MAX_LINE:])[-1]
    first_line = message[:MAX_LINE].partition("\n")[0]
    for known, phrase, kind in _PHRASES:
        if known == name and phrase.search(first_line):
            return kind(first_line)
    kind_of_name = _REFUSALS.get(name)
    return None if kind_of_name is None else kind_of_name(f"{name}: {first_line}")


def configuration(
    extra: Mapping[str, str] | None = None, sites: Sequence[str] = ("core-site.xml", "hdfs-site.xml")
) -> dict[str, str]:
    """Return Hadoop's settings: those of its files of these names, and ``extra`` over them."""
    # Invalid: a file is there but cannot be read. They are where hdfs-native looks: in HADOOP_CONF_DIR, else
    # HADOOP_HOME/etc/hadoop.
    settings: dict[str, str] = {}
    folder = os.environ.get("HADOOP_CONF_DIR")
    if folder is None and "HADOOP_HOME" in os.environ:
        folder = os.path.join(os.environ["HADOOP_HOME"], "etc/hadoop")  # noqa: PTH118 - a string is all we need
    for name in sites if folder else ():
        settings.update(_read(Path(folder or "") / name))
    settings.update(extra or {})
    return {name: _substituted(value, settings) for name, value in settings.items()}


def _substituted(value: str, settings: Mapping[str, str]) -> str:
    """Replace ``${name}``, ``${env.NAME}``, ``${env.NAME-default}`` and ``${env.NAME:-default}``, as Hadoop does."""
    for _ in range(SUBSTITUTIONS):
        found = _VARIABLE.search(value)
        if found is None:
            return value
        if (env := _ENVIRONMENT.fullmatch(found[1])) is not None:
            known = os.environ.get(env[1])
            known = env[3] if known is None or (not known and env[2] == ":-") else known
        else:
            known = settings.get(found[1])
        if known is None:
            return value  # as Hadoop leaves it; the one who needs it says so
        value = value[: found.start()] + known + value[found.end() :]
    return value


def _read(file: Path, *, included: bool = False) -> dict[str, str]:
    """Return the settings of a file and of those that it includes, in their order; none if it does not exist."""
    if not file.exists():
        return {}
    try:
        root = ET.parse(file).getroot()  # noqa: S314 - the administrator's own file
    except (OSError, ET.ParseError, ValueError, LookupError) as error:  # the last two for an unknown encoding
        raise Invalid(f"The Hadoop configuration {file} cannot be read ({error}); correct it.") from error
    settings: dict[str, str] = {}
    for entry in root.iter():
        if entry.tag == _INCLUDE and not included:
            settings.update(_read(file.parent / entry.get("href", ""), included=True))
        elif entry.tag == "property" and (name := entry.findtext("name")):
            settings[name.strip()] = (entry.findtext("value") or "").strip()
    return settings


def in_turn(settings: Mapping[str, str], nameservice: str, turn: int) -> dict[str, str]:
    """Return settings with the nameservice's NameNodes in another order: number ``turn``, modulo, comes first."""
    # A client that replaces a stuck one must not begin with the same NameNode: a call is too short to notice its loss.
    name = f"dfs.ha.namenodes.{nameservice}"
    ids = [each.strip() for each in settings.get(name, "").split(",") if each.strip()]
    first = turn % len(ids) if ids else 0
    return {**settings, name: ",".join(ids[first:] + ids[:first])}


def namenodes(settings: Mapping[str, str], nameservice: str, address: str) -> list[str]:
    """Return the addresses (``host:port``) of a nameservice's NameNodes, in the configuration's order, else Invalid."""
    # The address is `rpc-address` or `http-address`.
    ids = [each.strip() for each in settings.get(f"dfs.ha.namenodes.{nameservice}", "").split(",")]
    found = [settings.get(f"dfs.namenode.{address}.{nameservice}.{each}") for each in ids if each]
    addresses = [each for each in found if each]
    if not addresses:
        raise Invalid(
            f"{nameservice!r} is no nameservice of the Hadoop configuration: write host:port, "
            f"or let HADOOP_CONF_DIR name a directory whose hdfs-site.xml has dfs.ha.namenodes.{nameservice}."
        )
    return addresses
