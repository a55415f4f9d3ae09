"""``ha checkpoint import``: what can be refused without the lease takes no epoch, and its end is no alarm."""

import json
from pathlib import Path

import pytest

from ha.cli.context import refusals_as_errors
from store.errors import ConnectionLost, Unknown
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


def checkpoint(folder: Path) -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"b0-b0-b0-b0-b0"}')
    (folder / "offsets" / "0").write_text("v1\n{}\n-")
    return folder


def test_a_refused_adoption_takes_no_epoch(quick: Path, tmp_path: Path, cli: CommandLine) -> None:
    cli("checkpoint import orders daily", (tmp_path / "nothing").as_uri(), code=1)
    assert not quick.exists()
    there = checkpoint(tmp_path / "there")
    cli("checkpoint import orders daily", there.as_uri())
    (before,) = [each.name for each in (quick / "orders").iterdir()]
    said = cli("checkpoint import orders daily", there.as_uri(), code=1)
    assert "has a checkpoint already: add --replace" in said.err
    assert [each.name for each in (quick / "orders").iterdir()] == [before]


def test_an_adoption_says_so_in_the_history_and_revokes_nothing(
    tmp_path: Path, cli: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    cli("checkpoint import orders daily", checkpoint(tmp_path / "there").as_uri(), "--json")
    assert not [each for each in caplog.records if each.levelname == "WARNING" and "revoked" in each.getMessage()]
    (row,) = cli("job history orders --json").json
    assert (row["epoch"], row["ended"]) == (1, "imported")
    assert (
        cli("checkpoint list orders")
        .out.splitlines()[-1]
        .startswith(
            "orders: query daily has a checkpoint and has completed no batch here: `ha checkpoint inspect orders daily`"
        )
    )


def test_a_copy_whose_end_is_not_known_says_that_it_may_be_run_again() -> None:
    with (
        pytest.raises(Unknown, match=r"not known whether .* was made: run the command again.*\(No answer.\)"),
        refusals_as_errors(),
    ):
        raise ConnectionLost("No answer.")


def test_a_list_that_fails_speaks_of_no_change() -> None:
    with pytest.raises(ConnectionLost, match=r"^No answer.$"), refusals_as_errors(changes=False):
        raise ConnectionLost("No answer.")


def planned(tmp_path: Path, query: str, *names: str) -> str:
    """Write what `ha job preflight --json` prints of a query whose operators have these kinds, before and after."""
    column = {"name": "user", "type": "string"}
    states = {"default": {"name": "default", "key": [column], "value": []}}
    side = [{"id": number, "name": name, "states": states} for number, name in enumerate(names)]
    said = {"job": "orders", "fits": False, "queries": [{"query": query, "before": side, "after": side[::-1]}]}
    file = tmp_path / f"{query}-{len(names)}.json"
    file.write_text(json.dumps(said))
    return str(file)


def test_a_plan_that_says_too_little_is_refused_and_nothing_is_made(
    quick: Path, tmp_path: Path, cli: CommandLine
) -> None:
    place = until_batch(HDFS, 2).write_to(tmp_path / "old").as_uri()
    (tmp_path / "no-plan").write_text("{}")
    for words, code, said in (
        ((planned(tmp_path, "daily", "dedupe", "dedupe"),), 1, "cannot be matched without doubt"),
        ((planned(tmp_path, "weekly", "dedupe"),), 2, "says nothing of query 'daily': it has weekly"),
        ((str(tmp_path / "no-plan"),), 2, "is not what `ha job preflight --json` prints"),
        ((str(tmp_path / "none"),), 2, "does not exist"),
    ):
        assert said in cli("checkpoint import orders daily", place, "--map", *words, code=code).err
    refused = cli("checkpoint import orders daily", place, "--map", planned(tmp_path, "daily", "dedupe"), code=1)
    assert "has other operators than the checkpoint that the plan was made for" in refused.err
    assert not quick.exists()
