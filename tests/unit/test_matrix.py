"""Ranges of versions, and the table of the matrix."""

import re
import shutil
import tomllib
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

from ha.sandbox import realm
from tests.matrix.__main__ import ABILITIES, DRILLS, GREEN, QUICK, RED, SECURED, abilities, asked, green, table
from tests.matrix.places import PYTHONS, SPARKS, WITH_TABLES, cell_of, extras, oldest, requirements

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["spark"]]


EXTRAS = {Requirement(line).name for lines in PROJECT["optional-dependencies"].values() for line in lines}


def locked(name: str) -> dict[str, str]:
    """The packages of a lock, with their versions; of a package with several the last."""
    return dict(re.findall(r"^([^\s=]+)==([^\s;\\]+)", (ROOT / name).read_text(), re.MULTILINE))


def test_what_a_user_installs_with_all_extras_is_locked_and_is_what_we_develop_with() -> None:
    users, ours = locked("runtime.lock"), locked("requirements.lock")
    assert {*EXTRAS, *(each.name for each in RUNTIME)} <= users.keys()
    assert not {"pytest", "mypy", "hypothesis"} & users.keys()
    assert {name: version for name, version in ours.items() if name in users and users[name] != version} == {}


@pytest.mark.parametrize("requirement", RUNTIME, ids=lambda each: each.name)
def test_what_we_develop_with_is_in_the_range(requirement: Requirement) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = re.search(rf"^{requirement.name}==([^\s;\\]+)", lock, re.MULTILINE)
    assert pinned
    assert requirement.specifier.contains(pinned[1])
    assert not any(each.operator == "==" for each in requirement.specifier), "users have other versions"


def test_all_versions_of_the_matrix_are_in_the_range() -> None:
    (spark,) = (each.specifier for each in RUNTIME if each.name == "pyspark")
    assert all(spark.contains(version) for version in SPARKS)
    assert not spark.contains("3.4.4")
    assert not spark.contains("5.0.0")


def test_errors_of_the_oldest_msgspec_are_value_errors() -> None:
    """Damaged files are caught as such; those of 0.20 were no more than exceptions."""
    assert issubclass(msgspec.DecodeError, ValueError)
    (found,) = (each.specifier for each in RUNTIME if each.name == "msgspec")
    assert not found.contains("0.20.0")
    assert found.contains("0.21.0")


@pytest.mark.parametrize(
    ("line", "exact"), [("click>=8.1,<9", "click==8.1"), ("a<3,>=2.2.2", "a==2.2.2"), ("pinned==1.0", "pinned==1.0")]
)
def test_the_oldest_version_of_a_range(line: str, exact: str) -> None:
    assert oldest(line) == exact


def test_a_range_without_a_beginning_has_none() -> None:
    with pytest.raises(ValueError, match=r"'a<3' in pyproject\.toml has no lower bound"):
        oldest("a<3")


def test_the_oldest_cell_has_the_oldest_packages_and_no_other_cell_has() -> None:
    cells = [cell_of(python, spark) for python in PYTHONS for spark in SPARKS]
    assert [(each.python, each.spark) for each in cells if each.oldest] == [(PYTHONS[0], SPARKS[0])]
    assert "kazoo==2.11" in requirements(cells[0])
    assert not [each for each in requirements(cells[1]) if each.startswith("kazoo")]


@pytest.mark.parametrize("headers", [None, "/usr/bin/krb5-config"])
def test_the_oldest_cell_has_the_oldest_ends_of_extras(headers: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", {"krb5-config": headers}.get)
    found = requirements(cell_of(PYTHONS[0], SPARKS[0]))
    assert {"docker==7.1", "requests==2.32.2", "pyarrow==20"} <= set(found)
    assert ("kerberos==1.3" in found) is (headers is not None)
    assert "kerberos" not in extras(cell_of(PYTHONS[1], SPARKS[0]))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("spark", SPARKS)
def test_only_spark_3_without_distutils_gets_setuptools(python: str, spark: str) -> None:
    assert ("setuptools" in requirements(cell_of(python, spark))) is (spark == "3.5.9" and python != "3.11")


def test_what_a_cell_is_asked_for() -> None:
    oldest_cell, another = cell_of(PYTHONS[0], SPARKS[0]), cell_of(PYTHONS[0], SPARKS[1])
    assert asked(another, quick=False) == ABILITIES
    assert {*ABILITIES, "drills"} <= asked(oldest_cell, quick=False).keys()
    assert {"lead", "`Output`", "`kill -9`", "drills"} == asked(oldest_cell, quick=True).keys()
    assert asked(oldest_cell, ["engine", "drills"]).keys() == {"`--engine`", "drills"}
    assert not asked(another, ["drills"])
    assert asked(cell_of(PYTHONS[1], WITH_TABLES)).keys() - ABILITIES == {"tables"}


@pytest.mark.parametrize(("lacks", "secured"), [("", True), ("krb5kdc is not installed", False)])
def test_the_oldest_cell_is_asked_for_secured_stores_where_a_realm_runs(
    lacks: str, monkeypatch: pytest.MonkeyPatch, *, secured: bool
) -> None:
    monkeypatch.setattr(realm, "missing", lambda: lacks)
    monkeypatch.setattr(shutil, "which", {"krb5-config": "/usr/bin/krb5-config"}.get)
    wanted = asked(cell_of(PYTHONS[0], SPARKS[0]), quick=False)
    assert (SECURED.keys() <= wanted.keys()) is secured
    assert not SECURED.keys() & asked(cell_of(PYTHONS[0], SPARKS[1]), quick=False).keys()


def test_every_test_that_the_matrix_names_exists() -> None:
    named = [test for group in (ABILITIES, DRILLS, SECURED, QUICK) for tests in group.values() for test in tests]
    for path, _, test in (each.partition("::") for each in named):
        assert (ROOT / path).exists(), path
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / path).read_text(), test


def test_an_ability_is_there_if_all_its_tests_pass_and_one_ran() -> None:
    tests = [(f"{test}::test_a" if "::" not in test else test, True) for each in ABILITIES.values() for test in each]
    assert set(abilities(tests, ABILITIES).values()) == {GREEN}
    (first, _), *rest = tests
    assert abilities([(first, False), *rest], ABILITIES)["lead"] == RED
    assert abilities(rest, ABILITIES)["lead"] == RED, "nothing ran"
    assert abilities([*rest, ("tests/another.py::test_a", False)], ABILITIES)["workers"] == GREEN


@pytest.mark.parametrize(
    ("found", "is_green"),
    [
        (dict.fromkeys(ABILITIES, GREEN), True),
        ({**dict.fromkeys(ABILITIES, GREEN), "lead": RED}, False),
        ({"": "took more than 1500 s"}, False),
        ({}, False),
    ],
)
def test_a_cell_that_did_not_run_is_not_green(found: dict[str, str], *, is_green: bool) -> None:
    assert green(found) is is_green


def test_what_was_not_run_is_said_so() -> None:
    name = cell_of(PYTHONS[0], SPARKS[0]).name
    lines = table(
        {name: dict.fromkeys(ABILITIES, GREEN), cell_of("3.12", "4.3.0").name: {"": "no Python"}}
    ).splitlines()
    assert lines[2].count(f" {GREEN} ") == len(ABILITIES)
    assert lines[3].count("not run") == len(ABILITIES)
    assert [line for line in lines if line.count("no Python") == len(ABILITIES)] == [lines[-2]]
