"""ZooKeeper faults (stopped, killed, paused, wiped, forged data): no leader changes, no lookup fails (L2)."""

import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from msgspec.structs import replace

import ha
from ha.errors import NoLeader
from ha.leadership.lead import lead
from ha.leadership.standalone import StandaloneLeadership
from ha.sandbox import Sandbox
from leader.layout.information import LeaderInformation, decode, encode
from leader.layout.names import MAX_EPOCH, LeaderDirectory
from leader.layout.znodes import session_path
from store.clock import now
from store.zookeeper import ZooKeeper
from tests.patience import PATIENCE_S
from tests.system.integration.lookups import Lookups
from tests.system.integration.observed import Observed
from tests.system.integration.participants import QUICK, Team, new_job
from tests.system.integration.waiting import pause, until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

SHORT_S = float(QUICK["short_ttl"])
SESSION_S = float(QUICK["session_timeout"])
FORGER = "11111111-2222-4333-8444-555555555555"

log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, stores: dict[str, str]) -> Iterator[Team]:
    """A leader and a standby. In this module only a death may change the leader."""
    with Team(new_job(), tmp_path_factory.mktemp("pair"), stores) as team:
        team.start("a", "b")
        yield team


@pytest.fixture
def settled(pair: Team, healed: Sandbox) -> Team:
    del healed
    pair.settle()
    copy_is_right(pair)
    return pair


@contextmanager
def bare(team: Team, **options: object) -> Iterator[KazooClient]:
    client = KazooClient(hosts=team.settings["zookeeper"].partition("/")[0], timeout=SESSION_S, **options)
    client.start(timeout=15)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def node(team: Team) -> str:
    return f"/integration/jobs/{team.job}/leader"


def copy_is_right(team: Team, seconds: float = 20.0) -> None:
    directory = team.lease()[0]

    def right() -> bool:
        try:
            data, _ = zookeeper.get(node(team))
        except NoNodeError:
            return False
        found = decode(data, team.job)
        return found is not None and (found.epoch, found.session_id) == (directory.epoch, directory.session_id)

    with bare(team) as zookeeper:
        until(right, "the leader's node is as it should be", seconds)


def check_unmoved(team: Team, before: LeaderDirectory, lookups: Lookups) -> None:
    """Assert that the same leadership goes on, and that all lookups found it."""
    assert team.lease()[0] == before
    assert team["a"].command
    assert team["a"].said("revoked") == []
    lookups.check()
    assert {each.epoch for each in lookups.all} == {before.epoch}


@pytest.mark.parametrize("fault", ["stop", "kill", "pause"])
def test_an_outage(settled: Team, healed: Sandbox, fault: str) -> None:
    """ZooKeeper shuts down, is killed, or does not answer for many session timeouts."""
    before = settled.lease()[0]
    with Lookups(settled.job, settled.settings) as lookups, Observed(settled.mode) as modes:
        lookups.come_from("zookeeper")
        began = now()
        lookups.come_from("zookeeper")
        getattr(healed, fault)("zookeeper-1")
        lookups.come_from("hdfs")
        pause(15.0 if fault == "pause" else SESSION_S + 2)
        ended = now()
        if fault == "pause":
            healed.resume("zookeeper-1")
        else:
            healed.start("zookeeper-1")
        settled.settle()
        copy_is_right(settled)
        lookups.come_from("zookeeper")
        log.info("After an outage (%s) lookups came from ZooKeeper again %.1f s later.", fault, now() - ended)
    check_unmoved(settled, before, lookups)
    assert modes.values == ["zookeeper", "hdfs", "zookeeper"]
    assert lookups.sources(began) == ["zookeeper", "hdfs", "zookeeper"]


def test_a_wiped_zookeeper(settled: Team, healed: Sandbox) -> None:
    before = settled.lease()[0]
    with Lookups(settled.job, settled.settings) as lookups, Observed(settled.mode) as modes:
        lookups.come_from("zookeeper")
        healed.wipe_zookeeper()
        wiped = now()
        copy_is_right(settled)
        settled.settle()
        lookups.come_from("zookeeper")
        log.info("After a wipe everything was in ZooKeeper again %.1f s later.", now() - wiped)
    check_unmoved(settled, before, lookups)
    assert modes.values == ["zookeeper", "hdfs", "zookeeper"]


def other_job(right: LeaderInformation) -> bytes:
    return encode(LeaderInformation("another", right.epoch, right.session_id, right.endpoints))


def lower_epoch(right: LeaderInformation) -> bytes:
    return encode(LeaderInformation(right.job, right.epoch - 1, FORGER, {"jobmaster": "forged:1"}))


def other_session(right: LeaderInformation) -> bytes:
    return encode(LeaderInformation(right.job, right.epoch, FORGER, {"jobmaster": "forged:1"}))


def other_address(right: LeaderInformation) -> bytes:
    return encode(replace(right, endpoints={"jobmaster": "forged:1"}, version=right.version + 1))


def higher_epoch(right: LeaderInformation) -> bytes:
    return encode(LeaderInformation(right.job, MAX_EPOCH, FORGER, {"jobmaster": "forged:1"}))


GARBAGE: dict[str, Callable[[LeaderInformation], bytes]] = {
    "undecodable": lambda _: b"\xff\xfe\x00{",
    "truncated": lambda right: encode(right)[:-9],
    "500 KB": lambda right: encode(right) + b" " * 500_000,
    "empty": lambda _: b"",
    "another job": other_job,
    "lower epoch": lower_epoch,
    "another session": other_session,
}


def test_garbage_in_zookeeper(settled: Team) -> None:
    """R2, R3: readers fall back to HDFS, and the leader repairs its node."""
    before, begun = settled.lease()[0], now()
    with Lookups(settled.job, settled.settings) as lookups, bare(settled) as zookeeper:
        lookups.come_from("zookeeper")
        right = decode(zookeeper.get(node(settled))[0], settled.job)
        assert right is not None
        for name, made in GARBAGE.items():
            zookeeper.set(node(settled), made(right))
            with ha.connect(**settled.settings) as fresh:
                assert fresh.leader(settled.job).session_id == before.session_id, name
            copy_is_right(settled)
        zookeeper.delete(node(settled))
        copy_is_right(settled)
    log.info("%d kinds of damage were repaired in %.1f s.", len(GARBAGE) + 1, now() - begun)
    check_unmoved(settled, before, lookups)


def test_strangers_at_the_node_of_the_leaders_session_move_no_leader(settled: Team) -> None:
    """They give another address for the leader's process, and delete the node again and again."""
    before = settled.lease()[0]
    with (
        Lookups(settled.job, settled.settings) as lookups,
        bare(settled) as zookeeper,
        socket.create_server(("127.0.0.1", 0)) as stranger,
    ):
        lookups.come_from("zookeeper")
        port = stranger.getsockname()[1]
        for _ in range(2):
            settled.settle()
            token = settled.lease()[1].attestation
            path = f"/integration{session_path(token)}"
            zookeeper.set(path, f"a 127.0.0.1 {port} {'5eed' * 8}".encode())
            zookeeper.delete(path)
            until(lambda token=token: settled.lease()[1].attestation != token, "it has another lease")  # type: ignore[misc]
        settled.settle()
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
    check_unmoved(settled, before, lookups)
    assert settled["b"].said("granted") == []


def test_no_reader_is_sent_to_a_stranger(settled: Team) -> None:
    """R2: HDFS confirms each record before it is used, be it of an epoch that no leader will ever reach."""
    before = settled.lease()[0]
    with ha.connect(**settled.settings) as client, bare(settled) as zookeeper:
        assert client.leader(settled.job).epoch == before.epoch
        right = decode(zookeeper.get(node(settled))[0], settled.job)
        assert right is not None
        # The leader repairs its node within milliseconds; frozen, it lets the forgery stand for a second.
        settled["a"].freeze()
        try:
            for made in (higher_epoch, other_session, other_address):
                zookeeper.set(node(settled), made(right))
                with ha.connect(**settled.settings) as fresh:
                    for each in (client, fresh):
                        answer = each.leader(settled.job)
                        assert (answer.session_id, answer.endpoints) == (before.session_id, right.endpoints)
                        assert answer.verified
        finally:
            settled["a"].wake()
        copy_is_right(settled)
        until(lambda: client.leader(settled.job).source.value == "zookeeper", "ZooKeeper is believed again")
        assert client.leader(settled.job).epoch == before.epoch
    assert settled.lease()[0] == before
    assert settled["a"].said("revoked") == []


def test_a_forgery_that_nobody_repairs(team: Team) -> None:
    """R2: it is never the answer, however often it is read, and the next leader is found."""
    team.run("a")
    team.led_by("a")
    released = team.settle()
    team["a"].terminate()
    with ha.connect(**team.settings, audit=1.0) as client, bare(team) as zookeeper:
        forged = higher_epoch(LeaderInformation(team.job, 1, FORGER))
        zookeeper.create(node(team), forged)

        def answered() -> int:
            try:
                return client.leader(team.job).epoch
            except NoLeader:
                return 0

        with ThreadPoolExecutor(4) as others:
            assert set(others.map(lambda _: answered(), range(200))) == {0}
        team.run("b")
        until(lambda: answered() == released.epoch + 1, "the next leader is found")


def test_a_session_that_is_taken_away(team: Team) -> None:
    """A second client takes the leader's session and closes it: the nodes vanish at once, and nobody may seize."""
    settings: dict[str, Any] = {**team.settings}
    leading = lead(team.job, {"jobmaster": "here:1"}, timeout=PATIENCE_S, contender="here", **settings)
    with leading as leadership:
        team.run("b")
        before = team.settle()
        until(lambda: team["b"].said("contending as"), "b contends")
        with (
            Lookups(team.job, team.settings) as lookups,
            Observed(team.mode) as modes,
            Observed(lambda: str(leadership.is_leader()), every=0.005) as believed,
        ):
            lookups.come_from("zookeeper")
            with bare(team, client_id=client_id(leading)):
                until(lambda: team.mode() == "hdfs", "the leader notices that somebody has its session", SESSION_S)
            first = session(leading)
            until(lambda: session(leading) not in (None, first), "it has a new session", PATIENCE_S)
            team.settle()
            copy_is_right(team)
        assert believed.values == ["True"]
        assert modes.values == ["zookeeper", "hdfs", "zookeeper"]
        assert team.lease()[0] == before
        lookups.check()
        assert {each.epoch for each in lookups.all} == {before.epoch}
    team.led_by("b")


def zookeeper_of(leading: lead) -> ZooKeeper:
    """The participant's own client: only with its password can its session be taken away."""
    assert isinstance(leading._held, StandaloneLeadership)
    zookeeper = leading._held._stores.zookeeper
    assert zookeeper is not None
    return zookeeper


def client_id(leading: lead) -> tuple[int, bytes]:
    found: tuple[int, bytes] = zookeeper_of(leading)._here()._kazoo.client_id
    return found


def session(leading: lead) -> int | None:
    found = zookeeper_of(leading).session
    return found.id if found else None
