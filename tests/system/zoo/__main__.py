"""Run programs of the zoo, and record what they show: ``python -m tests.system.zoo [NAME ...]``.

Each runs under the product and in a restart loop of plain Spark, with the same kills. Exit code 1 if a verdict is not
the promised one.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from ha.sandbox import Sandbox
from ha.sidecar.command.class_data import ClassData, jars_of
from tests.system.zoo import results
from tests.system.zoo.declared import BY_NAME, ZOO, Program
from tests.system.zoo.judge import Found, Judge, draw
from tests.system.zoo.places import Places


def judged(
    program: Program, environment: Mapping[str, str], folder: Path, *, guarded: bool, seed: int, kills: int
) -> Found:
    jars = jars_of([sys.executable], os.environ)
    assert jars is not None
    root = f"{environment['HA_FILES'].rpartition('/')[0]}/zoo"
    places = Places(root, folder, {**os.environ, **environment})
    found = Judge(program, places, jars, guarded=guarded).judge(draw(program, seed, kills))
    found.asked, found.seed = kills, seed
    return found


def archived(environment: Mapping[str, str]) -> dict[str, str]:
    """Make the archive of Spark's classes now, unless there is one; returns the variables by which drivers use it."""
    # Each program's sidecar would begin to make it, and end before it is made.
    archive = ClassData([sys.executable], f"{environment['HA_FILES']}-training")
    archive.find()
    return archive.options(os.environ)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--sandbox", "at", default="build/zoo/sandbox", show_default=True, help="Directory of the servers.")
@click.option("--kills", default=5, show_default=True, help="How many in each run.")
@click.option("--seed", default=1, show_default=True, help="Of the kills.")
@click.option("--only", type=click.Choice(["guarded", "bare"]), help="Only under the product, or only without it.")
@click.option("--again", is_flag=True, help="Also what has been recorded of this commit with as many kills.")
@click.option("--record", type=click.Path(path_type=Path), default=results.FILE, help="Note what is shown here.")
@click.option("--logs", type=click.Path(path_type=Path), help="Keep the logs here.")
def main(
    names: tuple[str, ...],
    at: str,
    kills: int,
    seed: int,
    only: str | None,
    again: bool,
    record: Path,
    logs: Path | None,
) -> None:
    """Run the programs with these names, or all of them; go on where a run was stopped."""
    programs, made_by = [BY_NAME[name] for name in names] or ZOO, results.made_by()
    sandbox = Sandbox(at)
    sandbox.up(kafka=any(each.feed for each in programs))
    environment = sandbox.environment()
    os.environ.update({**environment, "HA_CLASS_DATA": "true"})
    os.environ.update(archived(environment))
    broken = []
    for program in programs:
        for guarded in (True, False):
            if (only and guarded != (only == "guarded")) or (not guarded and program.bare):
                continue
            if not again and results.has(program.name, made_by, guarded=guarded, kills=kills, file=record):
                continue
            folder = Path(tempfile.mkdtemp(prefix=f"zoo-{program.name}-"))
            found = judged(program, environment, folder, guarded=guarded, seed=seed, kills=kills)
            found.made_by = made_by
            results.record(program.name, found, guarded=guarded, file=record)
            click.echo(f"{program.name:24} {'guarded' if guarded else 'bare':8} {results.shown(found)}")
            if guarded and found.verdict != program.promised:
                broken.append(program.name)
            if logs:
                logs.mkdir(parents=True, exist_ok=True)
                for log in folder.glob("*log"):
                    shutil.copy(log, logs / f"{program.name}-{'guarded' if guarded else 'bare'}-{log.name}")
            shutil.rmtree(folder)
    click.echo(f"Not as promised: {', '.join(broken) or 'none'}")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
