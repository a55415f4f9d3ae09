"""A benchmark that is a program of its own, as it takes long: its folder, its clock, and its entry in the report."""

import shlex
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from benchmarks import report as reports
from benchmarks.context import Context
from benchmarks.report import this_machine
from benchmarks.result import Result
from store.clock import now

report_option = click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build", "benchmarks"),
    show_default=True,
    help="Write the report to this directory; other benchmarks in it stay.",
)


class Alone:
    """One run of such a program."""

    def __init__(self, module: str, name: str, title: str, report: Path) -> None:
        self._module, self._name, self._title, self._report = module, name, title, report
        self._began, self._when = now(), time.strftime("%Y-%m-%d %H:%M %Z")
        self.folder = (report / "work" / name / f"{time.time_ns():x}").absolute()
        self.folder.mkdir(parents=True)
        self.context = Context(quick=False, rounds=None, say=self.say, folder=self.folder)

    def say(self, sentence: str) -> None:
        """Print a line of progress, with the seconds since the start."""
        click.echo(f"{now() - self._began:6.0f} s  {sentence}", err=True)

    def end(self, result: Result) -> NoReturn:
        """Write the report and exit: with 0 if all targets are met, else with 1."""
        command = shlex.join(["python", "-m", self._module, *sys.argv[1:]])
        reports.write(self._report, reports.Entry(self._name, self._title, self._when, command, this_machine(), result))
        for target in result.targets:
            self.say(f"{target.sentence}: {target.measured:g}")
        for note in result.notes:
            self.say(note)
        self.say(f"The report is {self._report / reports.MARKDOWN}.")
        sys.exit(0 if all(target.met for target in result.targets) else 1)
