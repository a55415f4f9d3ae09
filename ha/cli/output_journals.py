"""Journals of a job's outputs, as the commands of ``ha output`` share them."""

import contextlib
from collections.abc import Iterator

from ha.cli.options import settings
from ha.config.stores import Stores
from ha.outputs.reading import JournalOutput, JournalReader
from leader.errors import NoLeader
from leader.job.admin import JobAdmin

EVERY = range(1 << 62)
"""All batches."""


@contextlib.contextmanager
def journals(
    job: str, name: str | None, files: str | None, zookeeper: str | None
) -> Iterator[tuple[Stores, JournalReader, list[JournalOutput]]]:
    """Open the stores of a job, and find its outputs, or the one of that name."""
    with contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper))) as opened:
        admin = JobAdmin(opened.files, None, opened.timing.call_timeout)
        reader = JournalReader(lambda: admin.directory(job))
        outputs = reader.outputs()
        known = sorted({each.name for each in outputs})
        if name is not None and name not in known:
            raise NoLeader(f"Job {job!r} has no output {name!r}: it has {', '.join(known) or 'none'}.")
        yield opened, reader, [each for each in outputs if name in (None, each.name)]


def ids_of(reader: JournalReader, found: JournalOutput, batches: range) -> Iterator[list[int]]:
    """Return the ids of its batches among these, in lists: the complete ones first, then those that are not."""
    yield from reader.ids(found, batches)
    yield [each for each in found.unfinished if each in batches]
