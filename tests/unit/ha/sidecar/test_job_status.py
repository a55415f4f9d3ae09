"""The sidecar corrects the paths in the checkpoints of a program that does not know of it."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.settings import Settings
from ha.hosts.crew import Crew
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.machine.ends import JOB_FAILED
from ha.spark.rewind.completing import RewindPlan, encoded
from leader.job.admin import JobAdmin
from leader.timing import Timing
from store.errors import Refused
from store.local import LocalFiles
from store.open import open_files
from tests.unit.ha.led import Led
from tests.unit.ha.noting import ENDS, NOTES, Notes, run, shown, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

METADATA = "spark/daily/state/0/_metadata/v2/0"
SCHEMA = "spark/daily/state/0/_stateSchema/default/0_a1"

LOOKS = (
    NOTES
    + f"""
from pathlib import Path
from urllib.parse import urlsplit
home = os.environ["HA_LEADER_DIRECTORY"]
content = Path(urlsplit(home).path, "{METADATA}").read_text().partition(chr(10))[2]
(path,) = json.loads(content)["stateStoreInfo"][0]["stateSchemaFilePaths"]
note(path.removeprefix(home))
"""
)


def write_metadata(workplace: Workplace, content: str) -> None:
    files, home = LocalFiles(workplace.jobs), f"orders/{state(workplace)[0].name}"
    parts = METADATA.split("/")
    for end in range(2, len(parts)):
        files.make_directory(f"{home}/{'/'.join(parts[:end])}")
    files.write(f"{home}/{METADATA}", f"v2\n{content}".encode())


def test_what_spark_has_noted_of_a_checkpoint_s_place_follows_before_the_command_starts(
    workplace: Workplace, notes: Notes
) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    store = {"storeName": "default", "stateSchemaFilePaths": [f"hdfs://elsewhere/ha/orders/{SCHEMA}"]}
    write_metadata(workplace, json.dumps({"stateStoreInfo": [store]}))
    looked = run(workplace, "b", LOOKS, "--again")
    assert looked.wait() == 0, looked.said
    assert notes.all()[-1][1] == f"/{SCHEMA}"


def test_a_rewind_that_was_decided_is_completed_before_the_command_starts(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    files, home = LocalFiles(workplace.jobs), f"orders/{state(workplace)[0].name}"
    for folder in ("spark/daily", "rewinding", "rewinding/daily", "rewinding/daily/decided"):
        files.make_directory(f"{home}/{folder}")
    files.make_directory(f"{home}/rewinding/daily/decided/tree")
    files.write(f"{home}/spark/daily/old", b"")
    files.write(f"{home}/rewinding/daily/decided/tree/new", b"")
    files.write(f"{home}/rewinding/daily/decided/plan", encoded(RewindPlan("daily", 7, "0123abcd", 1, 1, [])))
    looks = NOTES + "note(os.listdir(os.environ['HA_LEADER_DIRECTORY'].removeprefix('file://') + '/spark/daily'))"
    looked = run(workplace, "b", looks, "--again")
    assert looked.wait() == 0, looked.said
    assert "query daily is put back to batch 7" in looked.said
    assert notes.all()[-1][1] == ["new"]
    present = f"orders/{state(workplace)[0].name}"
    trashed = {each.name for each in files.list(f"{present}/trash/0123abcd/rewound=daily")}
    assert trashed == {"checkpoint", "plan"}


def test_a_command_is_started_also_if_that_cannot_be_read(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    write_metadata(workplace, "[]")
    again = run(workplace, "b", ENDS, "--again")
    assert again.wait() == 0
    assert "may not find its schema" in again.said
    assert len(notes.all()) == 2


def test_how_a_command_failed_is_shown_while_it_is_started_again(workplace: Workplace, notes: Notes) -> None:
    again = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_DELAY": "0"}
    source = NOTES + "note('runs')\nif len(open('notes').readlines()) < 2: sys.exit(3)\nstay()"
    program = run(workplace, "a", source, **again)
    notes.until(2, program)

    def failures() -> list[list[object]]:
        return [[each["epoch"], each["class"]] for each in shown(workplace, "job", "exceptions")]

    wait_until(lambda: failures() == [[1, "exit-3"]], what="the failure")


def test_what_is_tried_again_and_again_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """HDFS in safe mode refuses each try with the same words."""
    answers = ["safe mode", "safe mode", "safe mode", "no quorum", None]

    def action(_: object) -> None:
        if (said := answers.pop(0)) is not None:
            raise Refused(said)

    process = SimpleNamespace(holds_until=lambda _: 1.0, stores=SimpleNamespace(timing=SimpleNamespace(retry=0.1)))
    clock = SimpleNamespace(now=lambda: 0.0, sleep=lambda _: None)
    status: Any = SimpleNamespace(_job="orders", _process=process, _clock=clock, directory=lambda _: None)
    leader: Any = None
    assert JobStatusUpdater.keep_trying(status, leader, "count its failure", action)
    assert caplog.messages == [f"orders: it cannot count its failure: {why}" for why in ("safe mode", "no quorum")]


def test_a_failure_in_the_last_moment_is_kept_although_another_one_leads(tmp_path: Path) -> None:
    """The lease was given back, and the next leader has claimed the job, while the store was slow."""
    led = Led(tmp_path)
    led.claim("orders", "a:1")
    with open_files(tmp_path.as_uri()) as files:
        stores = SimpleNamespace(files=files, timing=Timing())
        process: Any = SimpleNamespace(stores=stores, settings=Settings())
        status = JobStatusUpdater(process, "orders", Crew("test", 1))
        former = JobAdmin(files, None, 5.0).directory("orders").leader
        led.claim("orders", "b:1")
        status.add_exception(former, "exit-1", "It broke.")
        status.settle()
        assert [each.message for each in JobAdmin(files, None, 5.0).exceptions("orders")] == ["It broke."]


SLOW = """
import threading
from ha.cli import main
from ha.daemon.process import ContendingProcess
from leader.job.exceptions import Exceptions
given_back, add, give_back = threading.Event(), Exceptions.add, ContendingProcess.release_and_wait
def late(*told, **more):
    given_back.wait()
    add(*told, **more)
def release_and_wait(*jobs):
    give_back(*jobs)
    given_back.set()
Exceptions.add, ContendingProcess.release_and_wait = late, release_and_wait
main(["run", "orders", "--", "sh", "-c", "exit 3"])
"""
"""``ha run`` of a command that fails, with a store that takes no failure before the lease is given back."""


def test_a_process_ends_only_when_its_last_failures_are_kept(workplace: Workplace) -> None:
    program = workplace.start(sys.executable, "-c", SLOW, HA_FAILOVER_MAX_ATTEMPTS="1")
    assert program.wait() == JOB_FAILED, program.said
    assert [each["class"] for each in shown(workplace, "job", "exceptions")] == ["exit-3", "gave-up"]
