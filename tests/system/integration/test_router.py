"""A router of HDFS federation as ``files``: contenders, lookups, a takeover, and what its NameNode never answers."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from store.errors import Invalid, NotFound, StoreError, Unknown
from store.open import open_files
from tests.system.integration.participants import Team, new_job
from tests.system.integration.router import routing
from tests.system.integration.waiting import until
from tests.unit.store.test_remote_errors import Relay, serving

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

WITHIN_S = 60.0


@pytest.fixture(scope="module")
def relays(hdfs_uri: str) -> list[Relay]:
    """Stand before the NameNode, and each swallows the answer to the first rename that it passes on."""
    parts = urlsplit(hdfs_uri)
    return [Relay((str(parts.hostname), int(parts.port or 0)), b"rename2") for _ in range(2)]


@pytest.fixture(scope="module")
def router(hdfs_uri: str, relays: list[Relay], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. Behind ``/lost1`` a nameservice loses an answer, behind ``/lost2`` one with two NameNodes."""
    direct = urlsplit(hdfs_uri)
    with ExitStack() as stack:
        one, first, second = (stack.enter_context(serving(relays[each])) for each in (0, 1, 1))
        namenodes = {"ns0": [direct.netloc], "ns1": [one], "ns2": [first, second]}
        mounts = {
            f"/{path}": (name, f"{direct.path}/{path}")
            for path, name in zip(("jobs", "lost1", "lost2"), namenodes, strict=True)
        }
        yield stack.enter_context(routing(tmp_path_factory.mktemp("router"), namenodes, mounts))


def test_contenders_lookups_and_a_takeover(router: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> None:
    job = new_job()
    stores = {"files": f"hdfs://{router}/jobs", "zookeeper": f"{zookeeper_hosts}/routed"}
    with Team(job, tmp_path, stores) as team:
        leader = team.start("a", "b", writes=True)
        with ha.connect(files=stores["files"], zookeeper="", snapshots="off") as client:
            before = client.leader(job, WITHIN_S)
            assert before.endpoints["jobmaster"] == "a:6123"
            leader.kill()
            team.led_by("b", seconds=WITHIN_S)
            until(lambda: client.leader(job, WITHIN_S).epoch > before.epoch, "HDFS says so")
            after = client.leader(job, WITHIN_S)
            assert after.endpoints["jobmaster"] == "b:6123"
        until(lambda: team.beats()[-1]["epoch"] == 2, "its command runs")
        assert team.check_one_at_a_time() == [1, 2]
        with ha.connect(files=f"{hdfs_uri}/jobs", zookeeper="", snapshots="off") as directly:
            assert directly.leader(job, WITHIN_S).session_id == after.session_id


def test_no_rename_leads_from_one_mount_to_another(router: str) -> None:
    with open_files(f"hdfs://{router}/") as files:
        files.call("make", lambda driver: driver.make_directory("jobs/a"), WITHIN_S)
        with pytest.raises(Invalid):
            files.call("rename", lambda driver: driver.rename("jobs/a", "lost1/a"), WITHIN_S)


@pytest.mark.parametrize(("namenodes", "error"), [(1, Unknown), (2, NotFound)])
def test_of_two_namenodes_a_router_asks_the_second_if_the_first_does_not_answer(
    router: str, relays: list[Relay], namenodes: int, error: type[StoreError]
) -> None:
    """The rename was made in both cases. With two, nothing proves any more that it was not: see docs/groups.md."""
    with open_files(f"hdfs://{router}/lost{namenodes}") as files:
        name = uuid.uuid4().hex
        files.call("make", lambda driver: driver.make_directory(name), WITHIN_S)
        before = sum(relay.requests for relay in relays)
        with pytest.raises(error):
            files.call("rename", lambda driver: driver.rename(name, f"{name}-new"), WITHIN_S)
        assert sum(relay.requests for relay in relays) == before + namenodes
        found = files.call("list", lambda driver: driver.list(""), WITHIN_S)
        assert f"{name}-new" in {each.name for each in found}
