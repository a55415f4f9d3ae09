"""What Spark writes into a checkpoint about where that lies, put right after the checkpoint has moved.

A leader directory gets another name with every leader. Nearly all that Spark keeps is relative to the checkpoint; but
the metadata of a ``transformWithState`` operator names the files of its state's schema by absolute paths (seen with
4.3.0), and a query that has moved fails: "File does not exist". So who moves a checkpoint has these paths follow.

    state/<operator>/_metadata/v2/<batch>     "v2", a line break, and JSON with stateSchemaFilePaths
    state/<operator>/_metadata/was-<batch>    the old one while it is replaced: in v2 every name is a number to Spark
"""

import json
import re
from typing import Any

from leader.own import OwnDirectory
from store.errors import Invalid

METADATA = re.compile(r"state/[0-9]+/_metadata/v2/[0-9]+")
"""Paths, in a checkpoint, of the files that this is about."""

WAS = "was-"

_VERSION = "v2"
_SCHEMA = re.compile(r".*/(state/[0-9]+/_stateSchema/.+)")


def at(location: str, metadata: bytes) -> bytes:
    """Return an operator's metadata, with the paths in it for a checkpoint that lies there.

    Args:
        location: URI of the checkpoint.
        metadata: the file's content; returned as it is if all of them are right.

    Raises:
        Invalid: it is none in a format that is known here.
    """
    try:
        version, _, text = metadata.decode().partition("\n")
        content: dict[str, Any] = json.loads(text)
        stores = content["stateStoreInfo"]
        for store in stores:
            store["stateSchemaFilePaths"] = [_moved(path, location) for path in store["stateSchemaFilePaths"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Invalid(f"That is no metadata of a stateful operator ({error!r}).") from error
    if version != _VERSION:
        raise Invalid(f"That is metadata of a stateful operator of version {version!r:.20}: only 'v2' is known.")
    if content == json.loads(text):
        return metadata
    return f"{version}\n{json.dumps(content, separators=(',', ':'))}".encode()


def bring_home(own: OwnDirectory, checkpoint: str, location: str) -> None:
    """Have the paths in a checkpoint of the leader's follow it; its query must not run. After a crash, call it again.

    Costs a list, one more for each stateful operator, and half a second for each ``transformWithState`` that has moved.

    Args:
        own: the leader's directory.
        checkpoint: the checkpoint's path in it.
        location: the checkpoint's URI.

    Raises:
        Fenced: another leader has taken over.
        Invalid: the metadata of an operator is in a format that is not known here.
        StoreError: it was refused, or nobody knows.
    """
    for operator in own.list(f"{checkpoint}/state"):
        folder = f"{checkpoint}/state/{operator.name}/_metadata"
        names = {entry.name for entry in own.list(folder)}
        for name in sorted(name for name in names if name.startswith(WAS)):
            _resume(own, folder, name)
        if _VERSION not in names:
            continue
        found = {entry.name for entry in own.list(f"{folder}/{_VERSION}")}
        for batch in sorted(name for name in found if name.isdecimal()):
            data = own.read(f"{folder}/{_VERSION}/{batch}")
            if (moved := at(location, data)) != data:
                _replace(own, folder, batch, moved, crc=f".{batch}.crc" in found)


def _replace(own: OwnDirectory, folder: str, batch: str, data: bytes, *, crc: bool) -> None:
    staged, place = own.stage(data), f"{folder}/{_VERSION}/{batch}"
    if crc:  # Hadoop's check sum of a local file: of the old content
        own.delete(f"{folder}/{_VERSION}/.{batch}.crc")
    own.rename(place, f"{folder}/{WAS}{batch}")
    own.rename(staged, place)
    own.delete(f"{folder}/{WAS}{batch}")


def _resume(own: OwnDirectory, folder: str, name: str) -> None:
    """Somebody has died while replacing one: put the old one back, if there is none in its place."""
    batch = name.removeprefix(WAS)
    if any(entry.name == batch for entry in own.list(f"{folder}/{_VERSION}")):
        own.delete(f"{folder}/{name}")
    else:
        own.rename(f"{folder}/{name}", f"{folder}/{_VERSION}/{batch}")


def _moved(path: str, location: str) -> str:
    match = _SCHEMA.fullmatch(path)
    return f"{location}/{match[1]}" if match else path
