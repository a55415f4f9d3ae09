"""A standby that has waited for two cleanings of its temporary directory: its driver leads within its usual time."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.clock import now
from tests.patience import DRIVER_S
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.sidecar.test_cleaned_twice import clean_twice
from tests.unit.ha.sidecar.test_things_removed import RUNS, place
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timed, pytest.mark.timeout(1500)]

DRIVER = Path(__file__).parent / "drivers/distinct.py"
ROOT = Path(__file__).parents[3]
USUAL = 2.5  # times: one takeover of each, on a machine that does other things too


class Job:
    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.source, self.target = (workplace.directory / each for each in ("in", "out"))
        self.source.mkdir()

    def batches(self) -> int:
        return len(list(self.target.glob("batch=*")))

    def contend(self, name: str, kind: str) -> Program:
        own = place(self.workplace, name)
        program = [sys.executable, str(DRIVER), self.source.as_uri(), self.target.as_uri()]
        how = ["--standby", "warm", "--", *program, "orders"] if kind == "warm" else ["--spark", "--", *program]
        environment = {
            "TMPDIR": str(own),
            "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={own}",
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
        }
        return self.workplace.ha("run", "orders", "--contender", name, *how, **environment)

    def next_batch(self) -> float:
        """Have one more batch; returns the seconds until it is there."""
        began, known, newest = now(), self.batches(), self.workplace.programs[-1]
        (self.source / ".staged").write_text(f"line {known}\n")
        (self.source / ".staged").rename(self.source / f"{known}.txt")
        wait_until(lambda: self.batches() > known or "has ended with" in newest.said, DRIVER_S, f"of {newest.errors}")
        assert self.batches() == known + 1, newest.said
        return now() - began


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Job]:
    workplace = Workplace(tmp_path)
    yield Job(workplace)
    workplace.end()


@pytest.mark.parametrize("kind", ["--spark", "warm"])
def test_a_driver_leads_in_its_usual_time(orders: Job, kind: str) -> None:
    leader = orders.contend("a", kind)
    orders.next_batch()
    took = {}
    for name in ("cleaned", "left-alone"):
        standby = orders.contend(name, kind)
        standby.until_said(f"contending as {name}")
        own = place(orders.workplace, name)
        if kind == "warm":
            wait_until(lambda own=own: list(own.glob(f"{RUNS}/grant-1.awaited")), DRIVER_S, standby.said)  # type: ignore[misc]
        if name == "cleaned":
            clean_twice(own)
        leader.send(signal.SIGTERM)
        leader.wait()
        took[name] = orders.next_batch()
        leader = standby
    sys.stdout.write(f"{kind}: {took}\n")
    assert took["cleaned"] < USUAL * took["left-alone"], took
