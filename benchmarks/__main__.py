"""Command line ``python -m benchmarks``: finds benchmarks in their catalogue, measures, and writes a report."""

import logging
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from benchmarks import report as reports
from benchmarks.alone import report_option
from benchmarks.context import Context
from benchmarks.figures import text
from benchmarks.report import this_machine
from benchmarks.result import Result
from benchmarks.versions import commit_of
from ha.drill.environment import DrillError
from ha.drill.runner import alone

MODULES = (
    "benchmarks.lookup",
    "benchmarks.publish",
    "benchmarks.takeover",
    "benchmarks.availability",
    "benchmarks.thousand_jobs",
    "benchmarks.draining",
    "benchmarks.groups",
    "benchmarks.checkpoints",
    "benchmarks.replication",
    "benchmarks.scale",
    "benchmarks.spark.zombie",
    "benchmarks.spark.publishing",
    "benchmarks.spark.outputs",
    "benchmarks.spark.many_batches",
    "benchmarks.spark.failover",
    "benchmarks.spark.hangs",
    "benchmarks.spark.first_call",
    "benchmarks.spark.workers",
)
"""Names in the order in which benchmarks run and appear in the report."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark."""

    name: str  # one word, from its module: ``spark_workers`` is in ``benchmarks.spark.workers``
    title: str  # what it measures, in a few words
    run: Callable[[Context], Result]  # measures it
    compares: bool = False  # whether it can measure another commit beside this one


def names() -> list[str]:
    return [_name(module) for module in MODULES]


def find(wanted: Iterable[str] = ()) -> list[Benchmark]:
    """Return the benchmarks with these names, or all of them, in the catalogue's order."""
    chosen = set(wanted)
    if unknown := chosen - set(names()):
        raise ValueError(f"There is no benchmark {min(unknown)!r}: they are {', '.join(names())}.")
    return [_load(module) for module in MODULES if not chosen or _name(module) in chosen]


def _name(module: str) -> str:
    return module.removeprefix("benchmarks.").replace(".", "_")


def _load(name: str) -> Benchmark:
    module = import_module(name)
    return Benchmark(_name(name), module.TITLE, module.run, getattr(module, "COMPARES", False))


DOCUMENTS = Path("docs", "benchmarks")

console = Console(stderr=True, highlight=False)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="Show all benchmarks.")
@click.option("--quick", is_flag=True, help="Only check that the benchmarks work; the figures mean little.")
@click.option("--rounds", type=click.IntRange(1), help="Number of repetitions.  [default: each benchmark's own]")
@report_option
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
            failed = _run(found, Context(quick, rounds, console.print, report / "work", commit), report)
    except DrillError as error:
        raise click.ClickException(str(error)) from error
    if len(failed) < len(found):
        if docs:
            reports.publish(report, DOCUMENTS)
        console.print(f"The report is {report / reports.MARKDOWN}.")
    if failed:
        console.print(f"[bold red]Failed:[/] {', '.join(failed)}.")
        sys.exit(1)


def _run(found: Sequence[Benchmark], usual: Context, report: Path) -> list[str]:
    """Run benchmarks, report each, and return the names of those that failed."""
    failed = []
    for each in found:
        entry = _entry(each, usual)
        if entry is None:
            failed.append(each.name)
            continue
        _tell(entry.result)
        reports.write(report, entry)
    return failed


def _entry(benchmark: Benchmark, usual: Context) -> reports.Entry | None:
    """Run one benchmark; print its error and return None if it failed."""
    folder = (usual.folder / benchmark.name).absolute()  # programs run in folders of their own
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    when, machine = time.strftime("%Y-%m-%d %H:%M %Z"), this_machine()
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    console.print(f"[bold]{benchmark.name}[/]: {escape(benchmark.title)}")
    try:
        with _saying() as say:
            result = benchmark.run(replace(usual, say=say, folder=folder))
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
