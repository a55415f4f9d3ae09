"""Command line ``python -m benchmarks``: measures, and writes a report."""

import logging
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markup import escape

from benchmarks import report as reports
from benchmarks.catalogue import Benchmark, find
from benchmarks.context import Context
from benchmarks.figures import text
from benchmarks.machine import this_machine
from benchmarks.result import Result
from benchmarks.versions import commit_of
from ha.drill.environment import DrillError
from ha.drill.runner import alone

DOCUMENTS = Path("docs", "benchmarks")


class Options(NamedTuple):
    """What is the same for all benchmarks of a run; see :class:`benchmarks.context.Context`."""

    quick: bool
    rounds: int | None
    against: str


console = Console(stderr=True, highlight=False)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="Show all benchmarks.")
@click.option("--quick", is_flag=True, help="Only check that the benchmarks work; the figures mean little.")
@click.option("--rounds", type=click.IntRange(1), help="Number of repetitions.  [default: each benchmark's own]")
@click.option(
    "--report",
    "report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build", "benchmarks"),
    show_default=True,
    help="Write the report to this directory; other benchmarks in it stay.",
)
@click.option("--against", metavar="COMMIT", help="Measure the packages of this commit, too, in the same rounds.")
@click.option("--docs", is_flag=True, help=f"Also copy the tables and pictures to {DOCUMENTS}.")
def main(
    names: tuple[str, ...],
    listing: bool,
    quick: bool,
    rounds: int | None,
    report: Path,
    against: str | None,
    docs: bool,
) -> None:
    """Run the benchmarks with these NAMEs, or all of them.

    Exit code 0: all ran, whether or not they met their targets; 1: one of them failed; 2: wrong usage.
    """
    try:
        found = find(names)
        commit = commit_of(against) if against else ""
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if commit and (alone_here := [each.name for each in found if not each.compares]):
        raise click.UsageError(f"{', '.join(alone_here)}: no other commit is measured there. Leave --against out.")
    if listing:
        for each in found:
            click.echo(f"{each.name:<20}{each.title}")
        return
    logging.getLogger("ha").setLevel(logging.ERROR)  # log messages of leaders
    try:
        with alone(report / "work"):
            failed = _run(found, Options(quick, rounds, commit), report)
    except DrillError as error:
        raise click.ClickException(str(error)) from error
    if len(failed) < len(found):
        if docs:
            reports.publish(report, DOCUMENTS)
        console.print(f"The report is {report / reports.MARKDOWN}.")
    if failed:
        console.print(f"[bold red]Failed:[/] {', '.join(failed)}.")
        sys.exit(1)


def _run(found: Sequence[Benchmark], options: Options, report: Path) -> list[str]:
    """Run benchmarks, report each, and return the names of those that failed."""
    failed = []
    for each in found:
        entry = _entry(each, options, report)
        if entry is None:
            failed.append(each.name)
            continue
        _tell(entry.result)
        reports.write(report, entry)
    return failed


def _entry(benchmark: Benchmark, options: Options, report: Path) -> reports.Entry | None:
    """Run one benchmark; print its error and return None if it failed."""
    folder = (report / "work" / benchmark.name).absolute()  # programs run in folders of their own
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    when, machine = time.strftime("%Y-%m-%d %H:%M %Z"), this_machine()
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    console.print(f"[bold]{benchmark.name}[/]: {escape(benchmark.title)}")
    try:
        with _saying() as say:
            result = benchmark.run(Context(options.quick, options.rounds, say, folder, options.against))
    except Exception:  # noqa: BLE001  # the others are still worth running
        console.print_exception()
        return None
    return reports.Entry(benchmark.name, benchmark.title, when, command, machine, result)


@contextmanager
def _saying() -> Iterator[Callable[[str], None]]:
    """Show progress: in one changing line on a terminal, else line after line."""
    if not console.is_terminal:
        yield lambda sentence: console.print(f"  {escape(sentence)}", soft_wrap=True)
        return
    with console.status("Beginning") as status:
        yield lambda sentence: status.update(escape(sentence))


def _tell(result: Result) -> None:
    for target in result.targets:
        verdict = "[green]met[/]" if target.met else "[bold red]NOT met[/]"
        said = f"{text(target.measured)} {target.unit}"
        console.print(f"  {verdict}: {escape(target.sentence)}: {escape(said)}", soft_wrap=True)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
