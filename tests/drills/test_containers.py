"""Drills against containers: the quick ones, or all of them with HA_DRILLS=all (``make drills``)."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.drill.catalogue import DRILLS
from ha.drill.container_ground import ContainerGround
from ha.drill.drill import Drill
from ha.drill.guards import HYBRID
from ha.drill.outcome import Outcome
from ha.drill.report.writing import write
from ha.drill.runner import missing, report
from ha.drill.series import run_series
from ha.history.events import Event
from tests.drills.verdict import unsafe, wrong

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(900)]

log = logging.getLogger(__name__)

CHOSEN = [each for each in DRILLS.values() if each.quick or os.environ.get("HA_DRILLS") == "all"]
REPORT = Path("build/drills/report")


@pytest.fixture(scope="module")
def found() -> Iterator[list[tuple[Outcome, list[Event]]]]:
    """What came of the drills; a report of it is written at the end."""
    gathered: list[tuple[Outcome, list[Event]]] = []
    yield gathered
    if gathered:
        histories = {(each.drill, each.ground, each.guard): events for each, events in gathered}
        write(report([each for each, _ in gathered]), histories, REPORT)


@pytest.mark.parametrize("drill", CHOSEN, ids=lambda drill: drill.name)
def test_the_job_survives(
    drill: Drill,
    containers: ContainerGround,
    tmp_path: Path,
    found: list[tuple[Outcome, list[Event]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if lacking := missing(drill, containers):
        pytest.skip(lacking)
    for attempt in (1, 2):
        folder = containers.folder / f"{tmp_path.name}-{attempt}"
        ((outcome, events),) = run_series([drill], containers, [HYBRID], folder, log.info)
        found[:] = [each for each in found if each[0].drill != drill.name]
        found.append((outcome, list(events)))
        broken = wrong(outcome)
        with capsys.disabled():
            sys.stdout.write(f"\n  {drill.name}: {outcome.status}, {outcome.seconds:.0f} s; {'; '.join(broken)} ")
        if not broken or unsafe(outcome):
            break
        # All of ZooKeeper, HDFS and Spark share two cores here: a leader that was lost to that is seen again, or not.
    assert not broken, "\n".join(broken)
