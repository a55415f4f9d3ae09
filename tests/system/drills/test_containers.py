"""Drills against containers: the quick ones, or all of them with HA_DRILLS=all (``make drills``)."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.drill.catalogue import DRILLS
from ha.drill.container_environment import ContainerEnvironment
from ha.drill.drill import Drill
from ha.drill.ha_provider import HYBRID
from ha.drill.outcome import DrillOutcome
from ha.drill.report import write
from ha.drill.runner import missing, report, run_series
from ha.history.events import Event
from tests.system.drills.conftest import Cluster
from tests.unit.ha.drill.verdict import unsafe, wrong

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(900)]

log = logging.getLogger(__name__)

CHOSEN = [each for each in DRILLS.values() if each.quick or os.environ.get("HA_DRILLS") == "all"]
REPORT = Path("build/drills/report")


@pytest.fixture(scope="module")
def found() -> Iterator[list[tuple[DrillOutcome, list[Event]]]]:
    gathered: list[tuple[DrillOutcome, list[Event]]] = []
    yield gathered
    if gathered:
        histories = {(each.drill, each.environment, each.provider): events for each, events in gathered}
        write(report([each for each, _ in gathered]), histories, REPORT)


@pytest.mark.parametrize("drill", CHOSEN, ids=lambda drill: drill.name)
def test_the_job_survives(
    drill: Drill,
    cluster: Cluster,
    containers: ContainerEnvironment,
    tmp_path: Path,
    found: list[tuple[DrillOutcome, list[Event]]],
    tell: Callable[[str], None],
) -> None:
    if lacking := missing(drill, containers):
        pytest.skip(lacking)
    for attempt in (1, 2):
        folder = containers.folder / f"{tmp_path.name}-{attempt}"
        ((outcome, events),) = run_series([drill], containers, [HYBRID], folder, log.info)
        if outcome.status == "skipped":  # it is not lacking anything
            cluster.unwell = outcome.reason
            pytest.fail(outcome.reason)
        found[:] = [each for each in found if each[0].drill != drill.name]
        found.append((outcome, list(events)))
        broken = wrong(outcome)
        tell(f"{drill.name}: {outcome.status}, {outcome.seconds:.0f} s{''.join(f'; {each}' for each in broken)}")
        if not broken or unsafe(outcome):
            break
        # ZooKeeper, HDFS and Spark share two cores here: a second run shows whether the leader was lost only to that.
    assert not broken, "\n".join(broken)
