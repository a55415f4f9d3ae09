"""A history as tables of an in-memory database: one table for each kind of event, and the names of stored entries."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ha.history import events

PLAIN = (events.Believed, events.Granted, events.Revoked, events.Published, events.Ran, events.Suspected, events.Ended)
WITH_AN_END = (events.Counted, events.Completed, events.CheckpointsRead, events.LookedUp)

PARTS = """
CREATE TABLE stored (n, at, job, operation, hand, path, target, dir, to_dir, rel, to_rel);
CREATE TABLE shown (n, job, query, batch);
CREATE TABLE fault (n, at, what);
CREATE TABLE endpoint (n, at, job, dir, epoch, version, number, name, address);
CREATE TABLE entry (n, at, job, dir, query, number, id);
CREATE TABLE lease (n, at, job, hand, owner, sequence, mode, session, was_sequence, was_mode, was);
CREATE TABLE directory (job, name, epoch, session);
CREATE INDEX stored_by_rel ON stored (job, rel, n);
CREATE INDEX entry_by_query ON entry (job, query, n);
"""
NO_LEASE = ("", "-1", "", "", "")
DIRECTORY = re.compile(r"(\d{10})-([0-9a-f-]{36})")


def tables(history: Iterable[events.Event]) -> sqlite3.Connection:
    """Fill a database; ``n`` is an event's place in the history."""
    base = sqlite3.connect(":memory:")
    base.executescript(PARTS)
    for kind in PLAIN + WITH_AN_END:
        columns = ", ".join(f'"{field}"' for field in kind.__struct_fields__)
        base.execute(f"CREATE TABLE {kind.__name__.lower()} (n, {columns})")
    known: set[tuple[str, str]] = set()
    for n, event in enumerate(history):
        if isinstance(event, events.Stored):
            _stored(base, n, event, known)
        elif isinstance(event, events.Fault):
            _insert(base, "fault", n, event.at, event.what)
        elif isinstance(event, PLAIN + WITH_AN_END):
            values = [_plain(value) for value in msgspec.structs.astuple(event)]
            _insert(base, type(event).__name__.lower(), n, *values)
        if isinstance(event, events.CheckpointsRead):
            for query, batch in event.queries.items():
                _insert(base, "shown", n, event.job, query, batch)
    return base


def _plain(value: object) -> object:
    return json.dumps(dict(sorted(value.items()))) if isinstance(value, Mapping) else value


def _insert(base: sqlite3.Connection, table: str, *values: Any) -> None:
    base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608  # our own names


def _stored(base: sqlite3.Connection, n: int, event: events.Stored, known: set[tuple[str, str]]) -> None:
    folder, _, rel = event.path.partition("/")
    to_folder, _, to_rel = event.target.partition("/")
    parts = (event.path, event.target, folder, to_folder, rel, to_rel)
    _insert(base, "stored", n, event.at, event.job, event.operation, event.by, *parts)
    for name in (folder, to_folder):
        match = DIRECTORY.fullmatch(name)
        if match and (event.job, name) not in known:
            known.add((event.job, name))
            _insert(base, "directory", event.job, name, int(match[1]), match[2])
    if event.operation == "delete":
        return
    made_in, made = (to_folder, to_rel) if event.operation == "rename" else (folder, rel)
    subject, _, name = made.partition("/")
    if subject == "record":
        _record(base, n, event, made_in, name, rel)
    elif subject == "checkpoints" and "/" not in name and "=" in name:
        query, _, value = name.partition("=")
        number, own, *_ = [*value.split("~"), ""]
        own_id = int(own) if own and query != "next" else None
        _insert(base, "entry", n, event.at, event.job, made_in, _unescaped(query), int(number), own_id)


def _record(base: sqlite3.Connection, n: int, event: events.Stored, made_in: str, name: str, was: str) -> None:
    kind, *fields = name.split("~")
    if kind == "endpoint":
        epoch, version, number, told = fields
        endpoint, _, address = told.partition("=")
        numbers = (int(epoch), int(version), int(number))
        _insert(base, "endpoint", n, event.at, event.job, made_in, *numbers, _unescaped(endpoint), _unescaped(address))
    elif kind == "lease":
        _, before, mode_before, _, session_before, *_ = was.split("~") if was.startswith("record/lease~") else NO_LEASE
        values = (_unescaped(fields[5]), int(fields[0]), fields[1], fields[3], int(before), mode_before, session_before)
        _insert(base, "lease", n, event.at, event.job, event.by, *values)


def _unescaped(text: str) -> str:
    """Undo ``_3a`` and the like: an underscore and two digits are one byte."""
    return re.sub(rb"_([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode()).decode()
