"""Simulated runs from the command line: many seeds, or one with its timeline.

python -m tests.system.simulation --seeds 100000      what `make soak` does
python -m tests.system.simulation --seed 4711         one run; if it breaks a promise, shrunk and shown
"""

import json
import sys
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.system.simulation.drawing import draw
from tests.system.simulation.many import Found, explore_all
from tests.system.simulation.report import report
from tests.system.simulation.run import simulate

SHOWN = 3
"""Violations that are made small and shown in full; each takes some seconds."""

LOGGED = 1000
"""Runs between two lines where there is no terminal that could show a bar."""


@click.command()
@click.option("--seeds", default=1000, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=int, help="Run this one only, and show what happened if it breaks something.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/soak.json"), show_default=True)
def main(seeds: int, first: int, seed: int | None, output: Path) -> None:
    """Search for a run that breaks a promise; exit code 1 if there is one."""
    if seed is not None:
        run = simulate(draw(seed))
        click.echo(report(run) if run.violations else f"Seed {seed} keeps every promise ({run.grants} grants).")
        sys.exit(bool(run.violations))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("seeds", total=seeds)
        shown = set[int]()

        def told(found: Found) -> None:
            for number in sorted(found.violations.keys() - shown):
                shown.add(number)
                progress.console.print(f"seed {number} breaks {found.violations[number]}", highlight=False)
            broken = f"seeds ({len(found.violations)} broken)"
            progress.update(task, completed=found.runs, description=broken)
            if not progress.console.is_terminal and found.runs % LOGGED == 0:
                # Chunks are counted in order: if the log stops, the next seeds are the ones that hang.
                click.echo(f"{found.runs} of {seeds} {broken}; next is seed {first + found.runs}")

        found = explore_all(range(first, first + seeds), told)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"first": first, **vars(found)}, indent=2) + "\n", encoding="utf-8")
    click.echo(summary(found))
    for broken in sorted(found.violations)[:SHOWN]:
        click.echo(report(simulate(draw(broken))))
    sys.exit(bool(found.violations))


def summary(found: Found) -> str:
    """Summarize the runs and their findings in a few lines."""
    done = f"{found.runs} runs ({found.seconds / 3600:.0f} simulated hours), {found.injected.total()} faults"
    lines = [f"{done}: {found.grants} grants, {found.lookups} lookups, {len(found.violations)} violations."]
    lines += [f"  {kind}: {number}" for kind, number in sorted(found.injected.items())]
    for what, (took, bound) in sorted(found.leaderless.items()):
        lines.append(f"  longest without a leader {what}: {took:.1f} s of {bound:.1f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
