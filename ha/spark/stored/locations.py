"""Locations: where a query keeps its checkpoint, and what it notes of that; and where executors find the stores.

A checkpoint is below the leader directory, where a fenced driver can no longer commit. That gets another name with
every leader. Nearly everything in a checkpoint is relative to it. But the metadata of a ``transformWithState`` operator
names the files of its state's schema by absolute paths (seen with Spark 4.3.0), so a query whose checkpoint has moved
fails: "File does not exist". These paths are corrected here.

    state/<operator>/_metadata/v2/<batch>     "v2", a line break, and JSON with stateSchemaFilePaths
    state/<operator>/_metadata/was-<batch>    the old file while it is replaced; in v2, Spark reads names as numbers
"""

import json
import os
import re
import threading
from typing import Any

from ha.config.settings import Settings
from ha.config.sources import load
from ha.hook.query_rules import fault
from ha.leadership.leadership import Leadership
from ha.spark.rewind.completing import settle
from ha.spark.tasks.task import SETTINGS
from leader.errors import InvalidName
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK, check_job
from store.errors import Invalid

METADATA = re.compile(r"state/[0-9]+/_metadata/v2/[0-9]+")
"""Paths, in a checkpoint, of the files that contain absolute paths."""

WAS = "was-"

_VERSION = "v2"
_SCHEMA = re.compile(r".*/(state/[0-9]+/_stateSchema/.+)")

_relocating = threading.Lock()


def checkpoint_location(leadership: Leadership, query: str) -> str:
    """Return the URI to give to Spark as a query's ``checkpointLocation``; call this before the query starts.

    It also corrects the absolute paths in the checkpoint. That costs a list, one more for each stateful operator, and
    for ``transformWithState`` half a second once in a leadership.

    Args:
        leadership: of the job.
        query: name of the query, the same as its ``queryName``.

    Raises:
        Fenced: another leader has taken over.
        Invalid: this version does not know the format of an operator's metadata.
        InvalidName: a directory cannot have that name.
        StoreError: the store did not answer.
    """
    location = leadership.path(f"{SPARK}/{check_query(query)}")
    settle(leadership)
    with _relocating:
        relocate(leadership.own, f"{SPARK}/{query}", location)
    return location


def check_query(query: str) -> str:
    """Return a query's name if it can be that of a directory; Spark mangles paths with other characters."""
    if wrong := fault(query):
        raise InvalidName(wrong)
    return query


def executor_settings(job: str | None = None, **settings: Any) -> dict[str, str]:
    """Return the Spark settings by which tasks on other hosts find the same stores and job as this program.

    Each setting is a ``spark.executorEnv.HA_...``, so it reaches every kind of task. In local mode, tasks inherit the
    environment of the driver, and need no settings for what is in there.

    Args:
        job: name of the job; default: ``HA_JOB`` of the environment.
        settings: as for :func:`ha.connect`, which includes those of the environment and of ``ha.toml``.

    Raises:
        InvalidName: a job cannot have that name.
        InvalidSettings: a setting is wrong.
    """
    return told_to_executors(load(settings), job or os.environ.get("HA_JOB"))


def told_to_executors(settings: Settings, job: str | None) -> dict[str, str]:
    """Return the same as :func:`executor_settings`, from these settings alone; ``job`` is None for no job."""
    flat, usual = settings.flat(), Settings().flat()
    values = {name: flat[name] for name in SETTINGS if flat[name] != usual[name]}
    if job:
        values["job"] = check_job(job)
    return {f"spark.executorEnv.HA_{name.upper()}": str(value) for name, value in sorted(values.items())}


def relocated(location: str, metadata: bytes) -> bytes:
    """Return an operator's metadata, with paths for a checkpoint at that location; the same if all are right."""
    # Raises `Invalid` if the content is not metadata in a format that this version knows.
    try:
        version, _, text = metadata.decode().partition("\n")
        content: dict[str, Any] = json.loads(text)
        stores = content["stateStoreInfo"]
        for store in stores:
            store["stateSchemaFilePaths"] = [_moved(path, location) for path in store["stateSchemaFilePaths"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Invalid(f"The metadata of a stateful operator cannot be read ({error!r}).") from error
    if version != _VERSION:
        raise Invalid(f"The metadata of a stateful operator have version {version!r:.20}: only 'v2' is known.")
    if content == json.loads(text):
        return metadata
    return f"{version}\n{json.dumps(content, separators=(',', ':'))}".encode()


def relocate(directory: FencedDirectory, checkpoint: str, location: str) -> None:
    """Correct the paths in a checkpoint below the leader directory; its query must not run. Repeat it after a crash."""
    # It costs a list, one more for each stateful operator, and half a second for each `transformWithState` that moved.
    for operator in directory.list(f"{checkpoint}/state"):
        folder = f"{checkpoint}/state/{operator.name}/_metadata"
        names = {entry.name for entry in directory.list(folder)}
        for name in sorted(name for name in names if name.startswith(WAS)):
            _resume(directory, folder, name)
        if _VERSION not in names:
            continue
        found = {entry.name for entry in directory.list(f"{folder}/{_VERSION}")}
        for batch in sorted(name for name in found if name.isdecimal()):
            data = directory.read(f"{folder}/{_VERSION}/{batch}")
            if (moved := relocated(location, data)) != data:
                _replace(directory, folder, batch, moved, crc=f".{batch}.crc" in found)


def _replace(directory: FencedDirectory, folder: str, batch: str, data: bytes, *, crc: bool) -> None:
    staged, place = directory.stage(data), f"{folder}/{_VERSION}/{batch}"
    if crc:  # Hadoop's check sum of a local file, for the old content
        directory.delete(f"{folder}/{_VERSION}/.{batch}.crc")
    directory.rename(place, f"{folder}/{WAS}{batch}")
    directory.rename(staged, place)
    directory.delete(f"{folder}/{WAS}{batch}")


def _resume(directory: FencedDirectory, folder: str, name: str) -> None:
    """Complete a replacement that a crash interrupted: put the old file back if there is no new one."""
    batch = name.removeprefix(WAS)
    if any(entry.name == batch for entry in directory.list(f"{folder}/{_VERSION}")):
        directory.delete(f"{folder}/{name}")
    else:
        directory.rename(f"{folder}/{name}", f"{folder}/{_VERSION}/{batch}")


def _moved(path: str, location: str) -> str:
    match = _SCHEMA.fullmatch(path)
    return f"{location}/{match[1]}" if match else path
