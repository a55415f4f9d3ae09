"""Gaps under the documented form, ``ha run --spark JOB -- spark-submit program.py``: what leaders tell of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ha.cli.commands import app
from ha.outputs.record import FILES, Record
from leader.layout.names import newest
from leader.layout.packed_names import read, written
from tests.patience import DRIVER_S
from tests.system.spark.helpers import eventually, files_of, names
from tests.system.spark.test_checkpoints import feed
from tests.system.spark.test_supervised import DRIVERS, RUN, SUBMIT, Driver

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture
def driver(job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(job, hdfs_uri, zookeeper_hosts, tmp_path)
    yield made
    print(made.said[-5000:])  # noqa: T201


def ran(driver: Driver) -> list[str]:
    program = [SUBMIT, str(DRIVERS / "endless.py"), driver.source.as_uri(), driver.target]
    return [*RUN, driver.job, "--spark", f"--listen={driver.listen}", "--", *program]


def told(driver: Driver, *command: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["output", *command, driver.job, "--files", driver.root])
    return found.exit_code, found.output


def journal(driver: Driver) -> str:
    leader = newest(names(f"{driver.root}/{driver.job}"))
    assert leader is not None
    (home,) = names(f"{driver.root}/{driver.job}/{leader.name}/out")
    return f"{driver.root}/{driver.job}/{leader.name}/out/{home}"


def remove_marker(driver: Driver) -> None:
    with files_of(f"{journal(driver)}/done/0") as do:
        do(lambda files: files.delete("0", recursive=True))


def remove_file(driver: Driver) -> None:
    (file,) = names(f"{driver.target}/batch=0")
    with files_of(f"{driver.target}/batch=0") as do:
        do(lambda files: files.delete(file))


LACKING = "it lacks batch 0, committed by query 'lines': the rows are not published."
GONE = "of batch 0 is gone since it was published. If no reader takes files away"


@pytest.mark.parametrize(
    ("harm", "line", "metric", "listed", "verified"),
    [
        pytest.param(remove_marker, LACKING, "ha_output_gap_batches", f"  gap: {LACKING}", LACKING, id="marker"),
        pytest.param(
            remove_file, GONE, "ha_output_gone_files_total", "complete up to batch 1", "is not there", id="file"
        ),
    ],
)
def test_what_is_removed_is_told_by_the_leader_and_by_the_next_one(
    driver: Driver, harm: Callable[[Driver], None], line: str, metric: str, listed: str, verified: str
) -> None:
    feed(driver.source, 0)
    with driver.running(ran(driver)):
        eventually(lambda: driver.metric("ha_output_gap_batches") == 0, DRIVER_S)
        assert line not in driver.said
        harm(driver)
        feed(driver.source, 1)
        eventually(lambda: line in driver.said, DRIVER_S)
        eventually(lambda: driver.metric(metric) == 1)
    code, said = told(driver, "list")
    assert (code, listed in said) == (0, True), said
    code, said = told(driver, "verify")
    assert (code, verified in said) == (1, True), said
    with driver.running(ran(driver)):
        eventually(lambda: line in driver.said, DRIVER_S)
        eventually(lambda: driver.metric(metric) == 1, DRIVER_S)
        assert driver.said.count(line) == 1


def test_a_forged_record_is_told_at_the_takeover(driver: Driver) -> None:
    """HDFS says when its folder was changed, and that was after the next batch was complete."""
    for number in range(2):
        feed(driver.source, number)
    with driver.running(ran(driver)):
        eventually(lambda: "batch=1" in driver.output(), DRIVER_S)
        eventually(lambda: "1" in names(f"{journal(driver)}/done/0"))
        eventually(lambda: driver.metric("ha_output_gap_batches") == 0)
    with files_of(f"{journal(driver)}/done/0/0") as do:
        kept = do(lambda files: [each.name for each in files.list("")])
        record = read(FILES, Record, kept)
        assert record is not None
        (new,) = written(FILES, msgspec.structs.replace(record, plan="another"))
        (old,) = kept
        do(lambda files: files.rename(old, new))
    with driver.running(ran(driver)):
        eventually(lambda: "batch 0 has other input than batch 0 of query 'lines'." in driver.said, DRIVER_S)
        eventually(lambda: driver.metric("ha_output_gap_batches") == 1, DRIVER_S)
