"""Two NameNodes: an orderly failover, and the death of the active one, move no leader."""

import logging
from collections.abc import Iterator

import pytest

from ha.sandbox import Sandbox
from store.clock import now
from tests.system.integration.lookups import Lookups
from tests.system.integration.participants import Team
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    box = Sandbox(tmp_path_factory.mktemp("twins"))
    try:
        box.up(namenodes=2)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
                patch.setenv(name, box.environment()[name])
            yield box
    finally:
        box.down(wipe=True)


@pytest.fixture(scope="module")
def pair(twins: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    given = twins.environment()
    settings = {"files": given["HA_FILES"], "zookeeper": given["HA_ZOOKEEPER"], "long_ttl": "30"}
    with Team("twins", tmp_path_factory.mktemp("pair"), settings) as team:
        team.start("a", "b", writes=True)
        yield team


@pytest.mark.parametrize("fault", ["orderly", "kill"])
def test_failover(twins: Sandbox, pair: Team, fault: str) -> None:
    before, active = pair.settle(), twins.active_namenode()
    other = {"namenode-1": "namenode-2", "namenode-2": "namenode-1"}[active or ""]
    with Lookups(pair.job, pair.settings) as lookups:
        lookups.come_from("zookeeper")
        began = now()
        if fault == "kill":
            twins.kill(active or "")
        twins.failover(other)
        switched = now()
        until(lambda: writes_since(pair, switched) > 5, "the command writes again")
        log.info("Failover (%s) took %.1f s; writes went on %.1f s later.", fault, switched - began, now() - switched)
        sequence = pair.lease()[1].sequence
        until(lambda: pair.lease()[1].sequence > sequence, "the lease is renewed")
    if fault == "kill":
        twins.up()
    lookups.check()
    assert pair.lease()[0] == before
    assert pair["a"].said("revoked") == []
    assert {each.epoch for each in lookups.all} == {before.epoch}
    ids = [beat["id"] for beat in pair.beats() if isinstance(beat["id"], int)]
    assert ids == sorted(set(ids))
    assert pair.check_one_at_a_time() == [before.epoch]


def writes_since(team: Team, at: float) -> int:
    return sum(beat["at"] > at and isinstance(beat["id"], int) and beat["write"] == "done" for beat in team.beats())
