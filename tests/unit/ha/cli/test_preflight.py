"""``ha job preflight``, and the check of ``ha job submit`` and ``ha job restart``: texts, stores, exit codes."""

import json
import sys
from pathlib import Path

import pytest

import ha
from ha.spark.tools import import_checkpoint
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.programs]

ENDS = (sys.executable, "-c", "raise SystemExit('There is no such table.')")


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A job with a checkpoint of one query."""
    checkpoint = until_batch(HDFS, 4).write_to(tmp_path / "elsewhere" / "sums")
    with ha.lead("orders") as leadership:
        import_checkpoint(leadership, "sums", checkpoint.as_uri())
    return "orders"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_job_without_checkpoints_has_nothing_to_check(words: tuple[str, ...], cli: CommandLine, quick: Path) -> None:
    Led(quick).claim("new", "a:1")
    said = cli("job preflight new", *words, "--", "no-such-command").out
    if words:
        assert json.loads(said) == {"job": "new", "fits": True, "queries": []}
    else:
        assert said == "new: no query has a checkpoint, so there is nothing to check\n"


def test_what_does_not_fit_is_told_with_what_to_do(job: str, cli: CommandLine) -> None:
    assert cli("job preflight", job, "--", *ENDS, code=1).out.splitlines() == [
        "orders: sums DOES NOT FIT",
        "  The program has not started it: it has ended with code 1. There is no such table.",
        "    -> correct the program, or give it what it needs on this host",
    ]
    found = cli("job preflight", job, "--json", "--", *ENDS, code=1).json
    assert (found["fits"], found["queries"][0]["problems"][0]["kind"]) == (False, "ended")
    cli("job preflight", job, "--without", "sums", "--", *ENDS)


@pytest.mark.parametrize(
    "form", [(sys.executable,), ("spark-submit", "--name", "orders")], ids=["python", "spark-submit"]
)
@pytest.mark.parametrize("damage", ["gone", "half of it"])
def test_a_damaged_file_of_the_checkpoint_is_named_and_nothing_is_started(
    job: str, quick: Path, cli: CommandLine, form: tuple[str, ...], damage: str
) -> None:
    file = next(quick.glob(f"{job}/*/spark/sums/commits/4"))
    if damage == "gone":
        file = next(quick.glob(f"{job}/*/spark/sums/metadata"))
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:1])
    (quick / "program.py").write_text(f"open({str(quick / 'started')!r}, 'w')")
    said = cli("job preflight", job, "--", *form, str(quick / "program.py"), code=1).out.splitlines()
    assert said[0] == "orders: sums DOES NOT FIT"
    name = str(file).rpartition("/sums/")[2]
    assert said[1].startswith(f"  The checkpoint is damaged: Spark would not start from it. {name}: ")
    assert said[2].startswith("    -> `ha checkpoint verify orders sums` says which batches can be continued")
    assert not (quick / "started").exists()


def test_mistakes_in_the_command_line_are_told(job: str, tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "file").touch()
    cli("job preflight", job, "--file", str(tmp_path / "file"), code=2)
    cli("job preflight", job, "--timeout", "0", "--", *ENDS, code=2)
    said = cli("job preflight", job, "--", "spark-submit", "--deploy-mode", "cluster", "x.py", code=2)
    assert "--deploy-mode cluster" in said.err
    cli("job preflight", job, code=2)  # no program is stored


def test_a_submit_stores_nothing_that_does_not_fit_unless_it_is_told_to(job: str, cli: CommandLine) -> None:
    said = cli("job submit", job, "--", *ENDS, code=1)
    assert "so nothing was changed: correct it, or add --no-preflight" in said.err
    assert cli("job submit", job, "--list", "--json").json == []
    assert not cli("job submit", job, "--no-preflight", "--json", "--", *ENDS).json["checked"]


def test_a_restart_checks_what_was_stored_without_a_check_and_a_roll_back_as_well(job: str, cli: CommandLine) -> None:
    cli("job submit", job, "--no-preflight", "--", *ENDS)
    assert "so nothing was changed" in cli("job restart", job, code=1).err
    assert "so nothing was changed" in cli("job submit", job, "--version", "1", code=1).err
    said = cli("job restart", job, "--no-preflight", "--timeout", "0.2", code=1)
    assert "It may have no leader now; the request stays for the next one" in said.err
    cli("job submit new --", *ENDS)
    cli("job preflight new")  # the stored program, and no checkpoint
