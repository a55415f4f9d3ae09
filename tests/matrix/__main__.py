"""Run what this package promises on each version of Spark and Python: ``python -m tests.matrix`` (``make matrix``).

Each cell gets a virtual environment in ``build/matrix``, which is kept. In it the tests of ``ABILITIES`` run, one cell
after the other, against one sandbox of the Python that runs this program. The table is written to
``build/matrix/table.md``; ``docs/versions.md`` has the one of a whole run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import click

from ha.sandbox import Sandbox, realm
from tests.matrix.places import FOLDER, PYTHONS, ROOT, SPARKS, WITH_TABLES, Cell, Missing, cell_of, extras, python_of

SYSTEM, STORES = "tests/system/spark", "tests/system/secured/test_secured_stores.py"
ABILITIES: Mapping[str, tuple[str, ...]] = {
    "lead": (f"{SYSTEM}/test_lead.py",),
    "checkpoints": (f"{SYSTEM}/test_checkpoints.py",),
    "`Output`": (
        f"{SYSTEM}/test_output.py::test_with_spark_on_hdfs",
        f"{SYSTEM}/test_output.py::test_partitions_in_each_format_with_spark_on_hdfs",
    ),
    "`--spark`": (f"{SYSTEM}/test_supervised.py::test_a_plain_program_is_led_and_ends_with_its_jvm",),
    "workers": (
        f"{SYSTEM}/test_worker.py::test_a_udf_learns_who_leads",
        f"{SYSTEM}/test_worker.py::test_a_worker_sees_the_next_job_master",
        f"{SYSTEM}/test_worker.py::test_every_kind_of_function_can_ask",
    ),
    "warm up": (f"{SYSTEM}/test_warm.py",),
    "`kill -9`, warm standby": (f"{SYSTEM}/test_marathon.py",),
    "`--engine`": (f"{SYSTEM}/test_engine.py",),
}
"""The demands on a cell, and the tests that show it."""

DRILLS: Mapping[str, tuple[str, ...]] = {"drills": ("tests/unit/ha/drill/",)}
SECURED: Mapping[str, tuple[str, ...]] = {
    "tickets": ("tests/unit/store/test_kerberos.py",),
    "secured ZooKeeper": ("tests/system/zookeeper/test_secured.py", "tests/unit/store/zookeeper/test_security.py"),
    # Not those that start a server again: the oldest Spark has not the jars of the sandbox's.
    "secured stores": (
        f"{STORES}::test_a_job_is_led_and_found_and_a_stranger_of_the_realm_has_no_effect",
        f"{STORES}::test_encrypted_webhdfs_reads_and_writes_with_a_ticket_and_believes_only_its_authority",
        f"{STORES}::test_checkpoints_are_adopted_and_exported_with_a_ticket_but_not_over_encrypted_webhdfs",
        f"{STORES}::test_the_doctor_asks_namenodes_over_https_with_a_ticket",
    ),
}
"""Further demands on the cell with the oldest packages: it has the other extras, and Kerberos's if it can."""

TABLES: Mapping[str, tuple[str, ...]] = {"tables": (f"{SYSTEM}/tables.py",)}
"""A further demand on the cells whose Spark has a Delta and an Iceberg."""

QUICK: Mapping[str, tuple[str, ...]] = {
    "lead": (f"{SYSTEM}/test_lead.py::test_many_queries_are_led_and_published",),
    "`Output`": (f"{SYSTEM}/test_output.py::test_with_spark_on_hdfs",),
    "`kill -9`": (f"{ABILITIES['`--spark`'][0]}[python]",),
    "drills": ("tests/unit/ha/drill/report/test_writing.py",),
}
"""CI's demands on the oldest cell."""

CELL_S = 1500.0

GREEN, RED = "yes", "**no**"


@click.command()
@click.option("--spark", "sparks", multiple=True, default=SPARKS, help="Versions of PySpark.  [default: all]")
@click.option("--python", "pythons", multiple=True, default=PYTHONS, help="Versions of Python.  [default: all]")
@click.option("--ability", "only", multiple=True, help="Run the tests of this ability alone.  [default: of all]")
@click.option("--quick", is_flag=True, help="Run a few tests of each cell; the table stays as it is.")
def main(sparks: tuple[str, ...], pythons: tuple[str, ...], only: tuple[str, ...], *, quick: bool) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    cells = [cell_of(python, spark) for python in pythons for spark in sparks]
    wanted = {cell: asked(cell, only, quick=quick) for cell in cells}
    if unknown := [cell.name for cell in cells if not wanted[cell]]:
        raise click.UsageError(
            f"{', '.join(unknown)}: nothing to run. Abilities are {', '.join(name.strip('`-') for name in ABILITIES)}."
        )
    results = FOLDER / "results.json"
    known: dict[str, dict[str, str]] = json.loads(results.read_text()) if results.exists() else {}
    sandbox, secured = Sandbox(FOLDER / "sandbox"), Sandbox(FOLDER / "secured")
    try:
        sandbox.up()
        if any("secured stores" in each for each in wanted.values()):
            secured.up(namenodes=2, secure=True)
        for cell in cells:
            known[cell.name] = {**(known.get(cell.name, {}) if only else {}), **_run(cell, wanted[cell])}
            click.echo(f"{cell.name}: {', '.join(f'{name} {said}' for name, said in known[cell.name].items())}")
            if not quick:
                results.write_text(json.dumps(known, indent=1))
    finally:
        sandbox.down()
        secured.down()
    if not quick:
        (FOLDER / "table.md").write_text(table(known))
    sys.exit(not all(green(known[cell.name]) for cell in cells))


def asked(cell: Cell, only: Sequence[str] = (), *, quick: bool = False) -> Mapping[str, tuple[str, ...]]:
    """Return what a cell is asked for, and the tests that show it; all of it if ``only`` names nothing."""
    found = QUICK if quick else ABILITIES
    if cell.oldest and not quick:
        found = {**found, **DRILLS, **({} if realm.missing() or "kerberos" not in extras(cell) else SECURED)}
    if cell.spark == WITH_TABLES and not quick:
        found = {**found, **TABLES}
    return {name: tests for name, tests in found.items() if not only or name.strip("`-") in only}


def green(found: Mapping[str, str]) -> bool:
    return set(found.values()) == {GREEN}


def table(known: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table in Markdown: a row for each cell that was run."""
    lines = [f"| PySpark | Python | packages | {' | '.join(ABILITIES)} |", "|---|---|---|" + "---|" * len(ABILITIES)]
    for spark in SPARKS:
        for python in PYTHONS:
            cell = cell_of(python, spark)
            found = known.get(cell.name, {})
            packages = "oldest" if cell.oldest else "newest"
            cells = [found.get(name, found.get("", "not run")) for name in ABILITIES]
            lines.append(f"| {spark} | {python} | {packages} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def abilities(tests: Iterable[tuple[str, bool]], wanted_of: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return for each ability whether it is there: each test has passed, or is of what this version has not.

    Args:
        tests: for each that was not skipped its name, ``path::test``, and whether it has passed.
        wanted_of: the tests of each ability.
    """
    there = list(tests)
    found = {}
    for ability, wanted in wanted_of.items():
        of_it = [passed for name, passed in there if name.startswith(wanted)]
        found[ability] = GREEN if of_it and all(of_it) else RED
    return found


def _run(cell: Cell, wanted: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    try:
        python = python_of(cell)
        tests = _tested(cell, python, [test for tests in wanted.values() for test in tests])
        # The machine may have been busy: what has failed is asked once more, and the second answer counts.
        if failed := [name for name, passed in tests.items() if not passed]:
            tests |= _tested(cell, python, failed)
    except Missing as missing:
        return {"": str(missing)}
    return abilities(tests.items(), wanted)


def _tested(cell: Cell, python: Path, wanted: list[str]) -> dict[str, bool]:
    """Run tests in a cell; returns for each that was not skipped whether it has passed.

    Raises:
        Missing: they did not come to an end.
    """
    report, log = FOLDER / f"{cell.name}.xml", FOLDER / f"{cell.name}.log"
    report.unlink(missing_ok=True)
    options = ["-o", "filterwarnings=default", "-p", "no:cacheprovider", f"--junitxml={report}", "-q"]
    environment = {
        **os.environ,
        "HA_TEST_SANDBOX": str(FOLDER / "sandbox"),
        "HA_TEST_SECURED_SANDBOX": str(FOLDER / "secured"),
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("SPARK_HOME", None)  # it would be another Spark's
    with log.open("ab") as said:
        try:
            subprocess.run(
                [python, "-m", "pytest", *options, *wanted],
                env=environment, cwd=ROOT, stdout=said, stderr=said, timeout=CELL_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Missing(f"took more than {CELL_S:g} s") from error
    if not report.exists():
        raise Missing(f"pytest did not start: {log}")
    return dict(_tests(report))


def _tests(report: Path) -> Iterable[tuple[str, bool]]:
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # our own
        if case.find("skipped") is None:
            path = (case.get("classname") or "").replace(".", "/")
            bad = case.find("failure") is not None or case.find("error") is not None
            yield f"{path}.py::{case.get('name')}", not bad


if __name__ == "__main__":
    main()
