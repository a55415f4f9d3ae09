"""``ha lab drill``: break a real job's stores, networks and hosts, and check that it survives."""

import difflib
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ha.cli.options import flag_option, json_option

if TYPE_CHECKING:
    from ha.drill.drill import Drill
    from ha.drill.environment import Environment
    from ha.drill.ha_provider import HaProvider
    from ha.drill.outcome import DrillOutcome
    from ha.history.events import Event

OWN = "hybrid-ha"  # this project's HA provider; others take part through ``python -m benchmarks.drills``

_NEEDED = "Drills need more packages: pip install 'hybrid-ha[spark,drill]'."
_COLOURS = {"passed": "bold green", "failed": "bold red", "skipped": "bold yellow"}


@click.group()
def drill() -> None:
    """Break the stores, networks and hosts of a real streaming job, and check that it survives."""


@drill.command("list", epilog="Example: ha lab drill list")
@json_option
def list_drills(as_json: bool) -> None:
    """Show all drills."""
    from ha.drill.environment import Ability  # noqa: PLC0415  # only those who drill pay for it

    drills = list(_catalogue().values())
    if as_json:
        found = [
            {
                "name": each.name,
                "group": each.group,
                "title": each.title,
                "needs": sorted(each.needs),
                "quick": each.quick,
                "baselines": each.baselines,
            }
            for each in drills
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "runs in", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for each in drills:
        where = "sandbox" if each.needs & {Ability.RETURN, Ability.CLUSTER} else "containers" if each.needs else "both"
        table.add_row(each.name, where, escape(each.title))
    Console(highlight=False).print(table)


@drill.command("run", epilog="Example: ha lab drill run kill-driver --against sandbox")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@flag_option("--all", "Run all drills.", name="every")
@flag_option("--quick", "Run a short selection, which takes about twenty minutes.")
@click.option(
    "--against",
    type=click.Choice(["auto", "containers", "sandbox"]),
    default="auto",
    show_default=True,
    help="Where to run: `auto` means containers if a Docker engine answers, else the sandbox, which lacks some drills.",
)
@flag_option(
    "--secure",
    "Run in a sandbox whose stores ask everybody who they are (Kerberos, TLS, ACLs); needs Kerberos' programs.",
)
@click.option("--report", "report", type=click.Path(path_type=Path, file_okay=False), help="Write a report here.")
@flag_option("--merge", "Keep the results of other drills that are in the report already.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/drills"),
    show_default=True,
    help="Directory for logs, histories and the sandbox.",
)
@flag_option("--keep", "Leave the servers running afterwards.")
@json_option
@click.pass_context
def run_drills(
    context: click.Context,
    names: tuple[str, ...],
    every: bool,
    quick: bool,
    against: str,
    secure: bool,
    report: Path | None,
    merge: bool,
    folder: Path,
    keep: bool,
    as_json: bool,
    providers: tuple[str, ...] = (OWN,),
) -> None:
    """Run drills; exit with 1 if one failed, or if none could be run.

    Each takes a minute or two: it breaks something of a real PySpark job under two sidecars, mends it, and judges.
    """
    from ha.drill.environment import DrillError  # noqa: PLC0415  # only those who drill pay for it
    from ha.drill.ha_provider import PROVIDERS  # noqa: PLC0415
    from ha.drill.report import encode, write  # noqa: PLC0415
    from ha.drill.runner import alone, run_series, skip_series  # noqa: PLC0415
    from ha.drill.runner import report as put_together  # noqa: PLC0415

    chosen = _chosen(names, every=every, quick=quick)
    teller = _Teller(aside=as_json)
    by = [PROVIDERS[name] for name in providers]
    if secure and against == "containers":
        raise click.UsageError("--secure runs in the sandbox: leave out --against containers.")
    try:
        context.with_resource(alone(folder))
    except DrillError as error:
        raise click.ClickException(f"{error}") from None
    environment, reason = _environment("sandbox" if secure else against, by, folder, teller, secure=secure)
    found: list[DrillOutcome] = []
    histories: dict[tuple[str, str, str], Sequence[Event]] = {}
    earlier = _earlier(report) if merge else []

    def begins(drill: "Drill", provider: "HaProvider") -> None:
        teller.drill(drill.name, provider.name)

    if environment is None:
        series = skip_series(chosen, against, by, reason)
    else:
        series = run_series(chosen, environment, by, folder, teller.step, begins)
    try:
        for outcome, events in series:
            found.append(outcome)
            histories[_key(outcome)] = events
            teller.outcome(outcome)
            if report is not None:  # after each drill: a failure later on loses nothing
                others = [each for each in earlier if _key(each) not in histories]
                write(put_together([*others, *found]), histories, report)
    finally:
        if environment is not None and not keep:
            teller.step("Taking the servers down")
            environment.down()
    teller.summary(found, report)
    if as_json:
        click.echo(encode(found), nl=False)
    ours = [each.status for each in found if each.provider == by[0].name]  # the others are there for comparison
    if "failed" in ours or set(ours) <= {"skipped"}:
        context.exit(1)


def _key(outcome: "DrillOutcome") -> tuple[str, str, str]:
    return outcome.drill, outcome.environment, outcome.provider


def _earlier(report: Path | None) -> "list[DrillOutcome]":
    from ha.drill.report import read  # noqa: PLC0415  # only those who drill pay for it

    if report is None:
        raise click.UsageError("--merge needs --report: name the report.")
    return read(report).outcomes if (report / "report.json").exists() else []


class _Teller:
    """Prints progress and verdicts on the terminal; ``aside`` on standard error, where JSON is the result."""

    def __init__(self, *, aside: bool = False) -> None:
        self._console = Console(highlight=False, soft_wrap=True, stderr=aside)
        self._began = time.monotonic()

    def step(self, sentence: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._began:7.1f} s[/]  {escape(sentence)}")

    def drill(self, name: str, provider: str) -> None:
        by = "" if provider == OWN else f", with {provider}"
        self._console.print(f"\n[bold]{escape(name)}{by}[/]")

    def outcome(self, outcome: "DrillOutcome") -> None:
        for check in outcome.checks:
            mark = "[green]passed[/]" if check.passed else "[bold red]FAILED[/]"
            self._console.print(f"           {mark}  {escape(check.name)}: {escape(check.detail)}")
        verdict = f"[{_COLOURS[outcome.status]}]{outcome.status.upper()}[/]"
        self._console.print(f"{verdict}  {escape(outcome.drill)} {outcome.seconds:.0f} s  {escape(outcome.reason)}")

    def summary(self, found: "Sequence[DrillOutcome]", report: Path | None) -> None:
        self._console.print()
        providers = dict.fromkeys(each.provider for each in found)
        for provider in providers:
            counts: Counter[str] = Counter(each.status for each in found if each.provider == provider)
            whose = f"{provider}: " if len(providers) > 1 else ""
            said = ", ".join(f"{counts[status]} {status}" for status in _COLOURS)
            self._console.print(f"{whose}{said}")
        if report is not None:
            self._console.print(f"The report is {escape(str(report / 'index.html'))}.")


def _catalogue() -> "dict[str, Drill]":
    from ha.drill.catalogue import DRILLS  # noqa: PLC0415  # only those who drill pay for it

    return DRILLS


def _chosen(names: tuple[str, ...], *, every: bool, quick: bool) -> "list[Drill]":
    drills = _catalogue()
    for name in names:
        if name not in drills:
            close = difflib.get_close_matches(name, drills, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "`ha lab drill list` shows all of them."
            raise click.UsageError(f"There is no drill {name!r}: {hint}")
    if not (names or every or quick):
        raise click.UsageError("Name some drills, or use --all or --quick; `ha lab drill list` shows all drills.")
    return [each for each in drills.values() if every or each.name in names or (quick and each.quick)]


def _environment(
    against: str, providers: "Sequence[HaProvider]", folder: Path, teller: _Teller, *, secure: bool = False
) -> "tuple[Environment | None, str]":
    """Return the environment to drill in; None and the reason if it is not available."""
    try:
        from ha.drill.container_environment import ContainerEnvironment  # noqa: PLC0415
        from ha.drill.environment import DrillError  # noqa: PLC0415
        from ha.drill.sandbox_environment import SandboxEnvironment  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"{_NEEDED} ({error})") from error
    if against != "sandbox":
        try:
            packages = [each.package for each in providers if each.package is not None]
            return ContainerEnvironment(folder, packages), ""
        except DrillError as error:
            if against == "containers":
                return None, str(error)
            teller.step(f"{error} The drills that need containers are NOT RUN; the others run in the sandbox.")
    return SandboxEnvironment(folder / ("secured" if secure else "sandbox"), secure=secure), ""
