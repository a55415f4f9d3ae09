"""Track record: takes the mend of a bug out of a copy of the working tree, and runs the test that keeps it.

python -m tests.system.track_record        the numbers, with what each bug was
python -m tests.system.track_record 3 4    reproduces these two
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.system.mutants.copies import ROOT, copied, run
from tests.system.track_record.bugs import BUGS, Bug, rows

FAILED = 1  # pytest's exit code when tests ran, and some failed
SHOWN = 12  # lines of the failure: a run of the simulator has a hundred
LIMIT_S = 900.0  # of a run of pytest: some tests start servers


@click.command()
@click.argument("numbers", nargs=-1)
def main(numbers: Sequence[str]) -> None:
    """Reproduce the bugs NUMBERS; exit code 0 if each test fails without the mend, and passes with it."""
    known = {f"{number}": f"Bug {number} broke {broke}: {bug}." for number, bug, broke in rows()}
    if not numbers:
        for number, said in known.items():
            click.echo(said + (f" It is not reproduced: {why}." if (why := BUGS[int(number)].why_not) else ""))
        return
    if unknown := sorted(set(numbers) - set(known)):
        click.echo(f"There is no bug {unknown[0]!r}: make reproduce lists those there are.", err=True)
        sys.exit(2)
    with tempfile.TemporaryDirectory(prefix="ha-track-record-") as folder:
        copy = copied(folder)
        held = [_reproduced(BUGS[int(number)], known[number], copy) for number in numbers]
    sys.exit(not all(held))


def _reproduced(bug: Bug, said: str, copy: Path) -> bool:
    click.echo(said)
    if bug.why_not:
        click.echo(f"It is not reproduced: {bug.why_not}.")
        return False
    were = bug.take_out(copy)
    without = run(copy, "--tb=short", bug.test, limit_s=LIMIT_S)
    for path, text in were.items():
        path.write_text(text, encoding="utf-8")
    ends = {
        line.split()[0] for line in without.stdout.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))
    }
    fails = without.returncode == FAILED and ends == {"FAILED"}  # an error is no failure: its servers did not start
    files = " and ".join(sorted({name for name, _, _ in bug.mend}))
    if fails:
        shown = [line for line in without.stdout.splitlines() if line.startswith("E ")]
        click.echo("\n".join(shown[:SHOWN]))
    click.echo(f"With the mend taken out of {files} {bug.test} {'fails' if fails else 'DOES NOT FAIL'}.")
    today = run(ROOT, bug.test, limit_s=LIMIT_S)
    click.echo(f"On the code as it is it {'passes' if not today.returncode else 'DOES NOT PASS'}.")
    if not fails or today.returncode:
        click.echo(without.stdout + without.stderr if not fails else today.stdout + today.stderr, err=True)
    return fails and not today.returncode


if __name__ == "__main__":
    main()
