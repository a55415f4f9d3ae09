"""``ha job move`` as people call it: a real move between two directories, and what is refused."""

import json
from pathlib import Path

import pytest

import ha
from ha.cli import move as module
from ha.placement.place import home_of
from tests.patience import PATIENCE_S
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The root of the job ``orders``, which nobody leads, and another one."""
    monkeypatch.setenv("HA_SHORT_TTL", "15")  # a machine that stalls for 4 s takes no leadership from the mover
    found = [(tmp_path / name).as_uri() for name in "ab"]
    monkeypatch.setenv("HA_FILES", ",".join(found))
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.checkpoints.completed("daily", 3)
    home = home_of(found, "orders")
    return [home, *(each for each in found if each != home)]


def test_a_job_that_nobody_leads_moves_and_goes_on_there(roots: list[str], cli: CommandLine) -> None:
    done = json.loads(cli("job move orders --to", roots[1], "--json").out.splitlines()[-1])
    assert (done["source"], done["target"], done["leader"], done["pause"]) == (*roots, "", None)
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        assert leadership.directory.startswith(roots[1])
        newest = leadership.checkpoints.latest("daily")
        assert newest is not None
        assert newest.batch == 3
    assert f"orders: it is at {roots[1]}" in cli("job move orders --to", roots[1]).out
    assert f"orders: it is at {roots[1]}" in cli("job move orders --undo").out
    assert "it has moved lately, and stays for 30 min more" in cli("job move orders --to", roots[0], code=1).err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "Give either --to ROOT or --undo"),
        (["--to", "x", "--undo"], "Give either --to ROOT or --undo"),
        (["--to", "hdfs://ns9/ha"], "name one of the roots"),
        (["--to", ""], "name one of the roots"),
    ],
)
def test_a_wrong_call_is_refused(roots: list[str], cli: CommandLine, flags: list[str], why: str) -> None:
    assert why in cli("job move orders", *flags, code=2).err
    assert roots


def test_one_root_is_no_group(roots: list[str], cli: CommandLine) -> None:
    assert "which is one root" in cli("job move orders --to", roots[0], "--files", roots[0], code=2).err


def test_a_root_can_be_named_by_its_nameservice() -> None:
    roots = ["hdfs://ns1/ha", "hdfs://ns2/ha"]
    assert [module._root(roots, each) for each in ("ns2", "hdfs://ns1/ha/")] == ["hdfs://ns2/ha", "hdfs://ns1/ha"]
