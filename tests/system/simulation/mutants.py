"""Foreign mutants: one line of the protocol at a time is wrong, and the simulator has to notice. They are no canaries.

python -m tests.system.simulation.mutants               every mutant, each in a process of its own
python -m tests.system.simulation.mutants --only audit  those whose name contains that

A canary breaks a rule in the words of the protocol; a mutant is a slip of the keyboard: a turned comparison, a deadline
that was dropped, a wrong start time. What the simulator cannot reach, for the reason given, a unit test has to catch.
"""

import importlib.abc
import importlib.util
import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import click

from tests.pools import LIMIT_S

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_name("mutants.toml")
WITHIN = 300


@dataclass(frozen=True)
class Mutant:
    """One wrong line.

    Attributes:
        name: the slip.
        path: the module's file.
        right: a part of its text that occurs once.
        wrong: what stands there instead.
        breaks: the guarantees that it should break, separated by spaces.
        unreached: why the simulator cannot see it; empty if it must.
    """

    name: str
    path: str
    right: str
    wrong: str
    breaks: str
    unreached: str = ""

    @property
    def module(self) -> str:
        """The module's name."""
        return self.path.removesuffix(".py").replace("/", ".")


MUTANTS = tuple(Mutant(**each) for each in tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"])


class _Loader(SourceFileLoader):
    """Loads one module with its wrong line."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(ROOT / mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text(encoding="utf-8")
        assert source.count(self._mutant.right) == 1, f"{self._mutant.name}: the right line is not there exactly once"
        code = compile(source.replace(self._mutant.right, self._mutant.wrong), self.path, "exec")
        assert fullname == self._mutant.module
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, loader=_Loader(self._mutant))


@dataclass(frozen=True)
class Catch:
    """The first seed that broke something, and what; none if every seed kept every promise."""

    seed: int | None = None
    broke: tuple[str, ...] = ()


def hunt(mutant: Mutant, within: int) -> Catch:
    """Run seeds until one breaks something. This process must not have imported the protocol yet."""
    assert mutant.module not in sys.modules, "it would be imported without its wrong line"
    sys.meta_path.insert(0, _Finder(mutant))
    from tests.system.simulation.drawing import draw  # noqa: PLC0415
    from tests.system.simulation.run import simulate  # noqa: PLC0415

    for seed in range(within):
        try:
            violations = simulate(draw(seed)).violations
        except AssertionError as broken:
            return Catch(seed, (f"invariant: {broken}",))
        if violations:
            return Catch(seed, tuple(sorted({each.guarantee for each in violations})))
    return Catch()


def hunted(mutant: Mutant, within: int) -> Catch:
    """Hunt a mutant in a process of its own."""
    command = [sys.executable, "-m", "tests.system.simulation.mutants", "--hunt", mutant.name, "--within", str(within)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{mutant.name}: {done.stderr}")
    return Catch(**json.loads(done.stdout))


@click.command()
@click.option("--within", default=WITHIN, show_default=True, help="How many seeds each mutant gets.")
@click.option("--only", default="", help="Hunt only those whose name contains this.")
@click.option("--processes", default=2, show_default=True, help="How many hunts run at once.")
@click.option("--hunt", "one", default="", hidden=True)
def main(within: int, only: str, processes: int, one: str) -> None:
    """Hunt foreign mutants, and say how many of those that can be reached are caught."""
    if one:
        click.echo(json.dumps(asdict(hunt(next(each for each in MUTANTS if each.name == one), within))))
        return
    mutants = [each for each in MUTANTS if only in each.name]
    caught, reached = 0, 0
    with ThreadPoolExecutor(processes) as pool:
        for mutant, found in zip(mutants, pool.map(lambda each: hunted(each, within), mutants), strict=True):
            said = f"seed {found.seed}: {' '.join(found.broke)}" if found.broke else "not caught"
            why = f" ({mutant.unreached})" if mutant.unreached else ""
            click.echo(f"{mutant.name} ({mutant.breaks}): {said}{why}")
            caught += bool(found.broke) and not mutant.unreached
            reached += not mutant.unreached
    click.echo(f"{caught} of {reached} that can be reached are caught.")


if __name__ == "__main__":
    main()
