"""Checkpoints of simulated Sparks, in large numbers.

Sweeps delete nothing needed, holes are all found, and a replica is promotable wherever its replicator is killed.

python -m tests.system.checkpoints --lives 10000 --holes 1000 --kills 1000      what `make soak` does
"""

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.pools import pool_in_background, results
from tests.system.checkpoints.lives import KILLS, killed, swept
from tests.unit.ha.checkpoints.holes import alarms, hole
from tests.unit.ha.checkpoints.sweeping import Counted

T = TypeVar("T")

CHUNK = 20
"""Seeds that one process takes at a time."""


@click.command()
@click.option("--lives", default=1000, show_default=True, help="How many queries live, with sweeps beside them.")
@click.option(
    "--holes", default=1000, show_default=True, help="How many holes are made, of each kind, and looks taken."
)
@click.option("--kills", default=1000, show_default=True, help="How many times a replicator is killed.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/soak-checkpoints.json"))
def main(lives: int, holes: int, kills: int, first: int, output: Path) -> None:
    """Count what is swept and needed, found and missed; exit code 1 if anything is wrong."""
    total = Counted()
    seeds = range(first, first + holes)
    with pool_in_background() as pool:
        for each in _all(pool, "lives", swept, range(first, first + lives)):
            total.lives += each.lives
            total.swept += each.swept
            total.asked += each.asked
            total.leaders += each.leaders
            total.lost += each.lost
        missing = list(_all(pool, "missing files", partial(hole, by_content=False), seeds))
        changed = list(_all(pool, "changed bits", partial(hole, by_content=True), seeds))
        dead = list(_all(pool, "killed replicators", killed, range(first, first - (-kills // KILLS))))
        alarmed = list(_all(pool, "looks at living checkpoints", alarms, seeds))
    said = {
        "sweeps": asdict(total),
        "missing files": {"made": len(missing), "overlooked": [path for path, found in missing if not found]},
        "changed bits": {"made": len(changed), "overlooked": [path for path, found in changed if not found]},
        "replicas": {
            "kills": sum(deaths for deaths, _, _ in dead),
            "looks": sum(looks for _, looks, _ in dead),
            "wrong": [wrong for _, _, wrong in dead if wrong],
        },
        "living": {"looks": len(alarmed), "false alarms": [each.missing for found in alarmed for each in found]},
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    click.echo(json.dumps(said))
    wrong = total.lost or any(not found for _, found in (*missing, *changed)) or any(alarmed)
    wrong = wrong or any(each for _, _, each in dead)
    sys.exit(bool(wrong))


def _all(pool: ProcessPoolExecutor, what: str, work: Callable[[int], T], seeds: range) -> Iterable[T]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        yield from progress.track(results(pool, work, seeds, chunk=CHUNK), total=len(seeds), description=what)


if __name__ == "__main__":
    main()
