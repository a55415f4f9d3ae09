"""Three sinks side by side: whose turn it is, and what is said of another commit's."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks.spark.outputs import CASES, FORMAT, OUTPUT, SINKS, Turn, planned, summarise
from benchmarks.versions import ROOT, commit_of, packages_of, with_packages
from tests.limits import HANGS_S


def test_each_sink_is_as_often_at_each_place() -> None:
    places: Counter[tuple[str, int, tuple[int, int]]] = Counter()
    firsts = Counter(planned(number)[0][0] for number in range(len(SINKS)))
    for number in range(len(SINKS)):
        for at, (sink, case) in enumerate(planned(number)):
            places[sink, at % len(SINKS), case] += 1
    assert set(places.values()) == {1}
    assert len(places) == len(SINKS) ** 2 * len(CASES)
    assert set(firsts.values()) == {1}, "and of a whole round"


def took(version: str, milliseconds: float, calls: float) -> list[Turn]:
    return [Turn(version, sink, *case, [milliseconds] * 3, 100.0, calls) for sink in SINKS for case in CASES]


def test_another_commit_has_lines_and_targets_of_its_own() -> None:
    alone = summarise(took("", 100.0, 5.0), 3, 8)
    assert "commit" not in alone.columns
    assert len(alone.targets) == len(CASES) + 1
    both = summarise([*took("", 100.0, 5.0), *took("0abc", 90.0, 6.0)], 6, 8)
    assert len(both.rows) == 2 * len(alone.rows)
    against = {each.sentence: each for each in both.targets[len(alone.targets) :]}
    assert len(against) == 2 * 2 * len(CASES)
    calls, time = (f"{what} of a batch of 10 files by {FORMAT}, against 0abc" for what in ("NameNode calls", "time"))
    assert (against[calls].measured, against[calls].met) == (5 / 6, True)
    assert (against[time].measured, against[time].met) == (100 / 90, False)
    dearer = [replace(each, calls=7.0) if each.sink == OUTPUT else each for each in took("", 90.0, 5.0)]
    missed = [each.sentence for each in summarise([*dearer, *took("0abc", 90.0, 6.0)], 6, 8).targets if not each.met]
    assert missed == [f"NameNode calls of a batch of {files} files by {OUTPUT}, against 0abc" for _, files in CASES]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["lookup", "--against", "HEAD"], "lookup: no other commit is measured there. Leave --against out."),
        (["spark_outputs", "--against", "no-such"], "Git does not find what to measure against"),
    ],
)
def test_what_cannot_be_compared_is_wrong_usage(names: list[str], said: str) -> None:
    shown = CliRunner().invoke(command.main, names)
    assert shown.exit_code == 2
    assert said in shown.output


def test_a_program_and_its_children_have_the_packages_of_the_commit(tmp_path: Path) -> None:
    packages = packages_of(commit_of("HEAD"), tmp_path)
    ask = "import ha, store, benchmarks; print(ha.__path__[0], store.__path__[0], benchmarks.__path__[0])"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ask!r}], check=True)"
    program = [sys.executable, "-c", outer]
    said = subprocess.check_output(program, cwd=ROOT, env=with_packages(packages, {}), text=True, timeout=HANGS_S)
    assert said.split() == [f"{packages / 'ha'}", f"{packages / 'store'}", f"{ROOT / 'benchmarks'}"]
