"""The programs: how each is started, which rows it must give, and what is promised for it."""

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.system.zoo import topics
from tests.system.zoo.places import PER_FILE, Places, events

PROGRAMS = Path(__file__).parent / "programs"
Expected = Callable[[Places], list[str]]
TOLD = "not guarded|not exactly once"
"""Words of every sentence by which a person is told that rows may be lost or come twice."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program of the zoo.

    Attributes:
        name: of its file.
        group: headline of the page under which it stands.
        under: `--spark` or nothing: how `ha run` starts it; `alone`: without `ha run`.
        command: what the user types before the file's name.
        expected: the rows, by what was fed.
        promised: `exact`, `refused` or `told`.
        note: what the page says of it, beside the sentence.
        refusal: pattern of the sentence by which it is refused.
        feed, read: for what is not a directory of files.
        progress: a number that grows with the rows.
        folders: those of the input that are fed.
        copies: events that come a second time.
        flush: whether the watermark has to be moved at the end.
        parts: whether rows begin with the first folder of the output.
        local: whether the output is a folder of the host.
        ends: it ends by itself, and is started again and again.
        endless: rows come without an input.
        bare: the program that does the same without this package; it is compared.
        beside: a second job runs the same program.
    """

    name: str
    group: str
    expected: Expected
    under: str = "--spark"
    command: str = "spark-submit"
    promised: str = "exact"
    note: str = ""
    refusal: str = ""
    feed: Callable[[Places, int], None] | None = None
    read: Callable[[Places], list[str]] | None = None
    progress: Callable[[list[str]], int] = len
    folders: tuple[str, ...] = ("a",)
    copies: int = 0
    flush: bool = False
    parts: bool = False
    local: bool = False
    ends: bool = False
    endless: bool = False
    bare: str = ""
    beside: bool = False

    @property
    def title(self) -> str:
        """The first line of the program's docstring: the pattern's name on the page."""
        text = (PROGRAMS / f"{self.name}.py").read_text()
        return text.partition("\n")[0].strip('".')

    @property
    def started(self) -> str:
        words = {"--spark": "ha run --spark JOB -- ", "plain": "ha run JOB -- ", "alone": ""}[self.under]
        command = re.sub(r"\{zoo\}/programs/|\{base\}/", "", self.command)
        return f"{words}{command} {self.name}.py"


def lines(places: Places) -> list[str]:
    return [json.dumps(each) for number in range(places.fed) for each in events(number)]


def ids(places: Places) -> list[str]:
    return [str(number) for number in range(places.fed * PER_FILE)]


def counts(places: Places) -> list[str]:
    return [f"u{user} {number + 1}" for number in range(places.fed) for user in range(PER_FILE)]


def once_each(places: Places) -> list[str]:
    return [f"{row} 1" for row in ids(places)]


def totals(places: Places) -> list[str]:
    return [f"u{user} {places.fed}" for user in range(PER_FILE)]


def of_user(expected: Expected, user: int) -> Expected:
    return lambda places: [each for each in expected(places) if f'"u{user}"' in each]


def in_parts(**parts: Expected) -> Expected:
    return lambda places: [f"{part}:{row}" for part, rows in parts.items() for row in rows(places)]


def by_user(places: Places) -> list[str]:
    return [f"user=u{number % PER_FILE}:{number}" for number in range(places.fed * PER_FILE)]


def twice(expected: Expected) -> Expected:
    return lambda places: expected(places) * 2


def joined(places: Places) -> list[str]:
    return [f"2026-01-01 {row}" if row_user(row) == 1 else f"2026-01-01 {row} {row}" for row in ids(places)]


def row_user(row: str) -> int:
    return int(row) % PER_FILE


def windows(places: Places) -> list[str]:
    return [
        f"2026-01-01 00:{begin:02} u{user} {min(2, places.fed - begin)}"
        for begin in range(0, places.fed, 2)
        for user in range(PER_FILE)
    ]


def numbers(places: Places) -> list[str]:
    return [str(each) for each in range(1 + max(map(int, places.rows()), default=-1))]


def from_database(statement: str) -> Callable[[Places], list[str]]:
    def read(places: Places) -> list[str]:
        try:
            with closing(sqlite3.connect(f"{(places.local / '.db').as_uri()}?mode=ro", uri=True)) as database:
                return [row[0] for row in database.execute(statement)]
        except sqlite3.OperationalError:  # there is no table yet
            return []

    return read


def last_numbers(rows: list[str]) -> int:
    return sum(int(row.rpartition(" ")[2]) for row in rows)


def only_part(part: str) -> Callable[[Places], list[str]]:
    return lambda places: [row for row in places.rows(parts=True) if row.startswith(f"{part}:")]


SINKS, BATCHES, TRIGGERS = "Queries and their checkpoints", "foreachBatch and foreach", "Triggers and loops"
STATE, SESSIONS, SOURCES = "State", "Sessions, and several queries", "Sources"
LED = "Programs that import ha.spark"
AGAIN = "A batch that a kill interrupts appends its rows again."
FORGOTTEN = "Files that come while its driver is away are never read."
COUNTED = "Begun again, it counts from 0, and its output has come further."
LINE = "does not take|begins? again|another query|another job"
"""Words of the sentence by which an output refuses a query that it does not know."""

NOT_BELOW = "is not started|begins no batch|does not take"
"""Words of the sentence by which a query is refused whose checkpoint no takeover would find."""

ZOO: list[Program] = [
    Program(name="files_to_files", group=SINKS, expected=lines),
    Program(name="file_sink", group=SINKS, expected=lines, note="Who reads it with Spark sees each row once."),
    Program(
        name="file_sink_nameless", group=SINKS, expected=lines, promised="refused", note=COUNTED, refusal="would drop"
    ),
    Program(name="file_sink_renamed", group=SINKS, expected=lines, promised="refused", refusal="would drop"),
    Program(
        name="nameless",
        group=SINKS,
        expected=lines,
        promised="refused",
        note=COUNTED,
        refusal="is not started|has no name",
    ),
    Program(
        name="memory_sink",
        group=SINKS,
        expected=lines,
        promised="told",
        note="The table is filled anew, from the first row.",
    ),
    Program(name="partition_option", group=SINKS, expected=by_user, parts=True),
    Program(name="own_checkpoint", group=SINKS, expected=lines, promised="refused", refusal=NOT_BELOW),
    Program(
        name="own_checkpoint_batches",
        group=SINKS,
        expected=lines,
        promised="told",
        command="python",
        note="A driver that was replaced, and wakes up, can go on writing.",
    ),
    Program(
        name="checkpoint_by_submit",
        group=SINKS,
        expected=lines,
        promised="refused",
        refusal=NOT_BELOW,
        command="spark-submit --conf spark.sql.streaming.checkpointLocation={base}/mine",
    ),
    Program(
        name="checkpoint_by_builder",
        group=SINKS,
        expected=lines,
        promised="refused",
        refusal=NOT_BELOW,
        command="python",
    ),
    Program(name="checkpoint_removed", group=SINKS, expected=lines, promised="refused", refusal=f"{NOT_BELOW}|{LINE}"),
    Program(name="name_with_slash", group=SINKS, expected=lines, promised="refused", refusal="cannot be the name"),
    Program(
        name="name_with_blank",
        group=SINKS,
        expected=lines,
        promised="refused",
        refusal="cannot be the name",
        command="python",
    ),
    Program(name="name_by_process", group=SINKS, expected=lines, promised="refused", refusal=LINE),
    Program(name="to_table", group=SINKS, expected=lines),
    Program(
        name="two_jobs",
        group=SINKS,
        expected=twice(lines),
        folders=("a", "b"),
        promised="refused",
        refusal="does not take|another job|has not put it there",
        beside=True,
    ),
    Program(name="unguarded", group=SINKS, expected=lines, under="plain", promised="told"),
    Program(
        name="relative_path",
        group=SINKS,
        expected=lines,
        read=lambda it: it.rows(home=True),
        promised="refused",
        refusal="is relative",
    ),
    Program(
        name="py_files",
        group=SINKS,
        expected=lines,
        command="spark-submit --py-files {zoo}/programs/rules/zoo_rules.py",
    ),
    Program(name="launcher", group=SINKS, expected=lines, command="python"),
    Program(name="batch_append", group=BATCHES, expected=lines, promised="told", note=AGAIN),
    Program(
        name="batch_append_nameless", group=BATCHES, expected=lines, promised="told", command="python", note=COUNTED
    ),
    Program(
        name="batch_cached",
        group=BATCHES,
        expected=in_parts(bronze=lines, silver=of_user(lines, 0)),
        parts=True,
        promised="told",
        note=AGAIN,
    ),
    Program(name="batch_overwrites", group=BATCHES, expected=lines),
    Program(name="batch_empty_check", group=BATCHES, expected=of_user(lines, 1)),
    Program(name="batch_retries", group=BATCHES, expected=lines, command="python"),
    Program(name="batch_threads", group=BATCHES, expected=in_parts(a=lines, b=lines), parts=True),
    Program(
        name="batch_sqlite", group=BATCHES, expected=lines, local=True, read=from_database("SELECT line FROM orders")
    ),
    Program(name="row_writer", group=BATCHES, expected=lines, local=True, promised="told", note=AGAIN),
    Program(name="python_sink", group=BATCHES, expected=lines, local=True, promised="told", note=AGAIN),
    Program(name="complete_mode", group=BATCHES, expected=totals, progress=last_numbers),
    Program(name="available_now", group=TRIGGERS, expected=lines, ends=True),
    Program(name="available_now_loop", group=TRIGGERS, expected=lines, command="python"),
    Program(name="for_a_while", group=TRIGGERS, expected=lines, ends=True, command="python"),
    Program(name="sql_view", group=STATE, expected=ids),
    Program(name="union", group=STATE, expected=twice(lines), folders=("a", "b")),
    Program(name="stream_join", group=STATE, expected=ids, folders=("a", "b")),
    Program(name="outer_join", group=STATE, expected=joined, folders=("a", "b"), flush=True),
    Program(name="deduplicate", group=STATE, expected=ids, copies=2),
    Program(name="windows", group=STATE, expected=windows, flush=True),
    Program(name="pandas_state", group=STATE, expected=counts),
    Program(name="transform_with_state", group=STATE, expected=counts),
    Program(name="session_again", group=SESSIONS, expected=lines, command="python"),
    Program(name="query_added", group=SESSIONS, expected=in_parts(a=lines, b=lines), parts=True),
    Program(name="query_removed", group=SESSIONS, expected=in_parts(b=lines), read=only_part("b")),
    Program(
        name="started_in_threads", group=SESSIONS, expected=in_parts(a=lines, b=lines), parts=True, command="python"
    ),
    Program(name="query_restarted", group=SESSIONS, expected=lines),
    Program(
        name="two_queries_one_output",
        group=SESSIONS,
        expected=twice(lines),
        folders=("a", "b"),
        promised="refused",
        refusal=LINE,
    ),
    Program(
        name="file_sink_shared",
        group=SESSIONS,
        expected=twice(lines),
        folders=("a", "b"),
        promised="refused",
        refusal="would drop",
    ),
    Program(name="chained", group=SESSIONS, expected=lines),
    Program(name="listener", group=SESSIONS, expected=lines, command="python"),
    Program(name="swallowed", group=SESSIONS, expected=lines),
    Program(name="stop_in_finally", group=SESSIONS, expected=lines, command="python"),
    Program(name="stop_in_batch", group=SESSIONS, expected=lines, ends=True),
    Program(name="clean_source", group=SOURCES, expected=lines),
    Program(
        name="socket_source",
        group=SOURCES,
        expected=lines,
        promised="refused",
        refusal="keeps nothing",
        note="What came while the driver was away is lost.",
    ),
    Program(name="dstreams", group=SOURCES, expected=lines, promised="told", note=FORGOTTEN),
    Program(name="rate_source", group=SOURCES, expected=numbers, endless=True),
    Program(name="kafka_pattern", group=SOURCES, expected=lines, feed=partial(topics.feed, topics="ab")),
    Program(
        name="kafka_to_kafka",
        group=SOURCES,
        expected=lines,
        feed=topics.feed,
        read=topics.read,
        promised="told",
        note=AGAIN,
    ),
    Program(name="lead_output", group=LED, under="plain", expected=lines, bare="batch_append"),
    Program(
        name="lead_nameless",
        group=LED,
        under="plain",
        expected=lines,
        bare="batch_append_nameless",
        promised="refused",
        refusal="has no name",
        command="python",
    ),
    Program(name="lead_two_writes", group=LED, under="plain", expected=lines, bare="batch_append"),
    Program(
        name="lead_two_outputs",
        group=LED,
        under="plain",
        expected=in_parts(bronze=lines, silver=of_user(lines, 0)),
        parts=True,
        bare="batch_cached",
        command="python",
    ),
    Program(
        name="lead_output_and_append",
        group=LED,
        under="plain",
        expected=in_parts(bronze=lines, silver=of_user(lines, 0)),
        parts=True,
        promised="told",
        note="A batch that a kill interrupts is appended again; the output has it once.",
        bare="batch_cached",
    ),
    Program(
        name="lead_shared_output",
        group=LED,
        under="plain",
        expected=twice(lines),
        folders=("a", "b"),
        promised="refused",
        refusal=LINE,
        bare="two_queries_one_output",
    ),
    Program(name="lead_counts", group=LED, under="alone", command="python", expected=once_each),
    Program(
        name="lead_begins_again",
        group=LED,
        under="plain",
        expected=lines,
        promised="refused",
        refusal=LINE,
        bare="name_by_process",
    ),
    Program(name="job_two_queries", group=LED, under="plain", expected=in_parts(a=lines, b=lines), parts=True),
    Program(
        name="job_appends",
        group=LED,
        under="alone",
        command="python",
        expected=lines,
        promised="told",
        note=AGAIN,
        bare="batch_append",
    ),
    Program(name="job_available_now", group=LED, under="plain", expected=lines, ends=True, bare="available_now"),
]
"""In the order of the page."""

BY_NAME: dict[str, Program] = {each.name: each for each in ZOO}


def kafka_settings(program: Program) -> dict[str, Any]:
    return {"spark.jars": os.environ["HA_SANDBOX_KAFKA_JARS"]} if program.feed else {}
