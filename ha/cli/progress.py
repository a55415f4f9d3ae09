"""Progress of long work on standard error: a bar or a status at a terminal, a line every ten seconds elsewhere.

It takes a thread. Where the host has none left nothing is shown, and the work goes on.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

from ha.cli.options import printable
from store.clock import now

LINE_EVERY_S = 10.0


@contextlib.contextmanager
def progress(quiet: bool, what: str, *, of_bytes: bool = True) -> Iterator[Callable[..., None] | None]:
    """Show how far work is; what is yielded takes done, total, and a description."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _lines(sys.stderr, what) as say:
            yield lambda done, total, description="": say(f"{description or what}: {done:,} of {total:,}")
        return
    from rich.console import Console  # noqa: PLC0415  # only people at a terminal pay for it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counted = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counted, TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None)

    def told(done: float, total: float, description: str = "") -> None:
        with contextlib.suppress(RuntimeError):
            bar.start()  # not before: a question may come first
        bar.update(task, completed=done, total=total, description=description or what)

    try:
        yield told
    finally:
        bar.stop()


@contextlib.contextmanager
def copying(quiet: bool) -> Iterator[Callable[[Any], None] | None]:
    """Show how far a copy is; what is yielded takes a :class:`ha.spark.checkpoint_tools.copying.CopyProgress`."""
    with progress(quiet, "listing files") as told:
        if told is None:
            yield None
        else:
            yield lambda now: told(now.bytes_done, now.bytes, f"{now.files_done}/{now.files} files, bytes")


@contextlib.contextmanager
def status(quiet: bool, what: str, aside: Callable[[], contextlib.AbstractContextManager[object]]) -> Iterator[Any]:
    """Show what is being done, while ``aside`` keeps what others write off standard error; what is yielded takes it."""
    if quiet:
        with aside():
            yield bool
        return
    with os.fdopen(os.dup(2), "w", encoding="utf-8") as kept:
        if not kept.isatty():
            with _lines(kept, what) as say, aside():
                yield say
            return
        from rich.console import Console  # noqa: PLC0415  # only people at a terminal pay for it

        shown = Console(file=kept).status(what)
        with contextlib.suppress(RuntimeError):
            shown.start()
        try:
            with aside():
                yield lambda text: shown.update(printable(text))
        finally:
            shown.stop()


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say every ten seconds what a command waits for, also at a terminal: it may be somebody else who works."""
    with _lines(sys.stderr, what):
        yield


@contextlib.contextmanager
def _lines(file: TextIO, what: str) -> Iterator[Callable[[str], None]]:
    """Write a line every ten seconds while this lasts: what was said last, and for how long it has gone on."""
    said, began, over = [what], now(), threading.Event()

    def tell() -> None:
        while not over.wait(LINE_EVERY_S):
            click.echo(f"ha: {printable(said[0])} ({now() - began:.0f} s)", file=file)

    thread = threading.Thread(target=tell, name="ha-progress", daemon=True)
    with contextlib.suppress(RuntimeError):
        thread.start()
    try:
        yield lambda text: said.__setitem__(0, text)
    finally:
        over.set()
        if thread.ident:
            thread.join()
