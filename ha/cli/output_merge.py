"""``ha output merge``: makes one file of many in the outputs of a job, which may be running."""

import re
from collections.abc import Mapping
from typing import Any

import click

from ha.cli.context import Context, command
from ha.cli.options import Seconds
from ha.outputs.job_outputs import merged
from ha.outputs.merging import MOST_FILES, Rule

LONGEST_S = 10 * 366 * 86_400


class Bytes(click.ParamType[int]):
    """A number of bytes, such as ``1000000``, ``64 MiB`` or ``1 GB``."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([1-9][0-9]{0,17}) ?(?:([KMGT])(i?)B)?", value, re.ASCII)
        if found is None:
            self.fail(f"{value!r} is no size, such as 64 MiB.", param, ctx)
        power = " KMGT".index(found[2] or " ")
        return int(found[1]) * int(1024**power if found[3] else 1000**power)


@command()
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@click.option(
    "--older-than", type=Seconds(LONGEST_S), default="1 h", show_default=True, metavar="DURATION",
    help="Only files that were written so long ago. A reader that has listed files and not read them yet fails if they "
    "are merged: choose longer than readers take.",
)  # fmt: skip
@click.option("--partition", default="", help="Only this partition and those below it, such as day=2026-11-23.")
@click.option(
    "--files-each", "count", type=click.IntRange(2, MOST_FILES), default=100, show_default=True, metavar="N",
    help="As many files become one.",
)  # fmt: skip
@click.option(
    "--size", type=Bytes(), default="128 MiB", show_default=True, metavar="BYTES",
    help="Longest file that is made; files of that length are left alone.",
)  # fmt: skip
@click.option("--rest", is_flag=True, help="Also merge folders with fewer than N files.")
@click.option("--dry-run", is_flag=True, help="Only say what would be merged.")
@click.option(
    "--web", default="", metavar="HOST:PORT",
    help="HTTP address of the NameNode.  [default: as Hadoop's configuration says]",
)  # fmt: skip
def merge(
    context: Context,
    job: str,
    name: str | None,
    older_than: float,
    partition: str,
    count: int,
    size: int,
    rest: bool,
    dry_run: bool,
    web: str,
) -> None:
    """Make one file of many in the outputs of JOB that are mergeable; JOB may be running, and its readers reading.

    HDFS makes each new file in one step; no row is read or written. A reader that lists a folder sees each row once,
    before and after. Run it every few minutes: the journal knows the newest 10,000 batches.

    If it is interrupted, run it again: it first does what is left.
    """
    done: list[Mapping[str, object]] = []
    rule = Rule(count, size, older_than, rest)
    for row in merged(context.stores, job, name, rule, partition, web, dry_run=dry_run):
        done.append(row)
        context.tell(_line(row))
    context.show(done, () if done else f"{job}: nothing is to be merged now")
    if any(row["result"] == "refused" for row in done):
        click.get_current_context().exit(1)


def _line(row: Mapping[str, object]) -> str:
    where = f"{row['partition']}/{row['target']}".lstrip("/")
    size = f"{row['files']} files, {row['bytes']:,} bytes"
    why = f": {row['text']}" if row["text"] else ""
    return f"{row['output']}  {where}  {row['result']}  {size}{why}"
