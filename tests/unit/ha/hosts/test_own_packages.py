"""A user's `store.py` or `leader.py`: our own processes find ours, and a program that needs ours is told of both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leader
import store
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import Workplace

pytestmark = pytest.mark.programs

OURS = {"leader": leader.__file__, "store": store.__file__}


@pytest.fixture(params=sorted(OURS))
def users(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A module of the user's own that has the name of a package of ours."""
    made = tmp_path / "program" / f"{request.param}.py"
    made.parent.mkdir()
    made.write_text("KEPT = 'the user'\n")
    return made


def ran(users: Path, source: str) -> subprocess.CompletedProcess[str]:
    program = users.with_name("orders.py")
    program.write_text(source)
    return subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("source", ["import ha; ha.lead", "import ha.spark", "import ha; ha.connect"])
def test_a_program_that_needs_ours_is_told_of_both_in_one_sentence(users: Path, source: str) -> None:
    said = ran(users, source).stderr.splitlines()[-1]
    assert said.startswith(
        f"ImportError: {users} is found in place of the package '{users.stem}' of hybrid-ha, which is "
    )
    assert Path(OURS[users.stem]).parent.name in said
    assert said.endswith(": give your module another name.")


def test_so_it_is_if_the_users_own_was_imported_before(users: Path) -> None:
    assert "give your module another name." in ran(users, f"import {users.stem}, ha; ha.lead").stderr


@pytest.mark.parametrize("path", ["beside", "PYTHONPATH"])
def test_a_command_of_ha_works_beside_it(users: Path, path: str, workplace: Workplace) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "ha.cli", "job", "list"],
        cwd=users.parent if path == "beside" else "/", capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={**workplace.environment, "PYTHONPATH": str(users.parent) if path == "PYTHONPATH" else ""},
    )  # fmt: skip
    assert (listed.returncode, "Traceback" in listed.stderr) == (0, False), listed.stderr


def test_a_sidecar_its_guard_and_the_users_program_each_have_their_own(users: Path, workplace: Workplace) -> None:
    source = f"import {users.stem}; print({users.stem}.KEPT, flush=True)"
    command = ("run", "orders", "--", sys.executable, "-c", source)
    sidecar = workplace.ha(
        *command, PYTHONPATH=os.pathsep.join([str(users.parent), str(Path(OURS["store"]).parents[1])])
    )
    assert sidecar.wait() == 0, sidecar.said
    assert sidecar.output.read_text() == "the user\n"
