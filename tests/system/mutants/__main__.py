"""Mutants: draws slips in any module of the product, and runs the tests beside it: which of them does nobody notice?

python -m tests.system.mutants ha/outputs --count 40 --seed 7
python -m tests.system.mutants ha/history/checker.py --count 0         every slip of one module

Each slip is tried in a copy of the working tree: the tests of the nearest folder under tests/unit, then those given by
--also. A run that is begun again with the same --output goes on where it ended.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import click

from tests.system.mutants.copies import ROOT, copied, run
from tests.system.mutants.slips import Slip, slips


@click.command()
@click.argument("where", nargs=-1, required=True)
@click.option("--count", default=40, show_default=True, help="How many to draw; 0: all.")
@click.option("--seed", default=0, show_default=True)
@click.option("--also", multiple=True, metavar="PATH", help="More tests, if those beside the module notice nothing.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/mutants.json"), show_default=True)
def main(where: Sequence[str], count: int, seed: int, also: Sequence[str], output: Path) -> None:
    """Draw slips in the modules or folders WHERE; exit code 1 if one of them survives."""
    drawn = [(path, slip) for path in _modules(where) for slip in slips((ROOT / path).read_text(encoding="utf-8"))]
    click.echo(f"{len(drawn)} slips are possible.")
    if count:
        drawn = Random(seed).sample(drawn, min(count, len(drawn)))  # noqa: S311  # replayed, not secret
    known: dict[str, str] = json.loads(output.read_text()) if output.exists() else {}
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ha-mutants-") as folder:
        copy = copied(folder)
        for path, slip in drawn:
            name = f"{path}:{slip.line}: {slip.what}"
            if name not in known:
                known[name] = _noticed(copy, path, slip, also)
                output.write_text(json.dumps(known, indent=1))
            click.echo(f"{name}: {known[name] or 'SURVIVES'}")
    survive = [name for path, slip in drawn if not known[name := f"{path}:{slip.line}: {slip.what}"]]
    click.echo(f"{len(survive)} of {len(drawn)} survive.")
    sys.exit(bool(survive))


def _modules(where: Sequence[str]) -> list[str]:
    found = [
        path for each in where for path in ([ROOT / each] if each.endswith(".py") else (ROOT / each).rglob("*.py"))
    ]
    return sorted(f"{path.relative_to(ROOT)}" for path in found)


def _noticed(copy: Path, path: str, slip: Slip, also: Sequence[str]) -> str:
    """Return the first test that fails with the slip; an empty text if none does."""
    right = (copy / path).read_text(encoding="utf-8")
    (copy / path).write_text(slip.text, encoding="utf-8")
    try:
        beside = next(folder for folder in (copy / "tests/unit" / path).parents if folder.is_dir())
        for tests in (f"{beside}", *also):
            if found := _failing(copy, tests):
                return found
        return ""
    finally:
        (copy / path).write_text(right, encoding="utf-8")


def _failing(copy: Path, tests: str) -> str:
    quick = ("--hypothesis-profile=unit", "-m", "not spark and not containers and not programs and not slow")
    try:
        ended = run(copy, tests, *quick)
    except subprocess.TimeoutExpired:
        return "it takes too long"
    failed = [line.split()[1] for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if ended.returncode and not failed:
        return f"pytest ends with {ended.returncode}"
    return failed[0] if failed else ""


if __name__ == "__main__":
    main()
