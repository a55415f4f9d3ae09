"""The election on a virtual clock: who leads, when, and at what cost."""

import pytest

from leader.election.events import FilesCommand, MakeDirectory
from leader.layout.lease import Mode
from tests.unit.leader.arena import TIMING, Arena, arenas

ARENAS = arenas(zookeeper=(True, False))


def test_the_first_contender_creates_the_job_and_leads_at_once(arena: Arena) -> None:
    first = arena.start("a")
    leader, seconds = arena.until_leader(1)
    assert leader is first
    assert seconds < 0.5
    assert first.grants()[0].epoch == 1


def test_a_standby_stays_one(arena: Arena) -> None:
    first, second = arena.start_led("b")
    arena.run(300)
    assert arena.leaders() == [first]
    assert not second.grants()
    assert not first.revokes()


def test_endpoints_are_published_in_both_stores(arena: Arena) -> None:
    arena.start("a")
    arena.run(1)
    record = [name for name in arena.files.root.entries["orders"].entries if name.startswith("0000000001-")]
    names = arena.files.list(f"orders/{record[0]}/record")
    assert [name for name in names if name.startswith("endpoint~")] == ["endpoint~0000000001~1~1~jobmaster=a_3a6123"]
    if arena.ensemble:
        assert b'"jobmaster":"a:6123"' in arena.ensemble.nodes["/jobs/orders/leader"].data


def test_after_a_crash_the_standby_leads_within_the_bound(arena: Arena) -> None:
    first, second = arena.start_led("b")
    first.crash()
    leader, seconds = arena.until_leader(70)
    assert leader is second
    assert leader.grants()[0].epoch == 2
    bound = TIMING.session_timeout if arena.ensemble else TIMING.short_ttl
    assert seconds <= bound + 1


def test_a_release_hands_over_at_once(arena: Arena) -> None:
    first, second = arena.start_led("b")
    first.contender.release("orders")
    leader, seconds = arena.until_leader(5)
    assert leader is second
    assert seconds < 1


def test_a_zookeeper_outage_moves_no_leader() -> None:
    arena = Arena()
    first, second = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(120)
    arena.zookeeper_up()
    arena.run(60)
    assert arena.leaders() == [first]
    assert len(first.grants()) + len(second.grants()) == 1
    assert arena.lease.mode is Mode.ZOOKEEPER


def test_a_wiped_zookeeper_moves_no_leader() -> None:
    arena = Arena()
    leader, _ = arena.start_led("b")
    arena.zookeeper_down()
    arena.zookeeper.wipe()
    arena.zookeeper_up()
    arena.run(60)
    assert arena.leaders() == [leader]
    assert len(leader.grants()) == 1
    assert "/jobs/orders/leader" in arena.zookeeper.nodes


def test_a_crash_while_zookeeper_is_down_is_taken_over_within_the_short_ttl() -> None:
    arena = Arena()
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(20)
    leader.crash()
    successor, seconds = arena.until_leader(20)
    assert successor is standby
    assert seconds <= TIMING.short_ttl + 1


def test_both_dying_at_once_costs_the_long_ttl() -> None:
    arena = Arena()
    leader, standby = arena.start_led("b")
    leader.crash()
    arena.zookeeper_down()
    successor, seconds = arena.until_leader(70)
    assert successor is standby
    assert seconds <= TIMING.long_ttl * (1 + TIMING.drift) + 1


def test_without_the_file_system_leadership_ends_within_the_long_ttl() -> None:
    arena = Arena()
    (first,) = arena.start_led()
    first.files_link.there = False
    arena.run(TIMING.long_ttl)
    assert not first.leads()
    assert first.revokes()[0].until is not None


def test_a_paused_leader_is_fenced_and_notices_when_it_wakes(arena: Arena) -> None:
    first, second = arena.start_led("b")
    first.pause()
    leader, _ = arena.until_leader(70, besides=first)
    assert leader is second
    first.resume()
    assert not first.leads()
    arena.run(5)
    assert "fenced" in first.revokes()[-1].reason or "renew" in first.revokes()[-1].reason


def test_a_leader_costs_one_write_in_20_seconds_and_no_reads() -> None:
    arena = Arena()
    arena.start("a")
    arena.run(60)
    operations, writes = arena.files.operations, arena.files.writes
    arena.run(600)
    assert arena.files.writes - writes <= 600 / 20
    assert arena.files.operations - operations == arena.files.writes - writes


def test_a_claim_costs_two_operations() -> None:
    arena = Arena()
    first = arena.start("a")
    arena.run(30)
    second = arena.start("b")
    second.endpoints = None
    arena.run(30)
    first.crash()
    arena.until_leader(15)
    before = arena.files.writes
    arena.run(0.05)
    assert arena.files.writes - before <= 1, "only the history is written after the grant"


def test_endpoints_that_are_confirmed_a_moment_after_the_grant_do_not_wait_for_the_line_of_history(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = arena.start("a")
    process.endpoints = None
    arena.until(process.grants, 5.0)
    made, execute = [], arena.files.execute

    def executed(job: str, command: FilesCommand, by: str = "") -> list[str] | None:
        if isinstance(command, MakeDirectory):
            made.append(command.path.split("/")[1])
        return execute(job, command, by)

    monkeypatch.setattr(arena.files, "execute", executed)
    process.contender.confirm("orders", arena.directory.session_id, {"rest": "a:1"})
    arena.run(1)
    assert made == ["record", "history"]


def test_the_line_of_history_does_not_wait_for_ever_for_endpoints(arena: Arena) -> None:
    process = arena.start("a")
    process.endpoints = None
    arena.until(process.grants, 5.0)
    lines = f"orders/{arena.directory.name}/history"
    arena.until(lambda: arena.files.list(lines), TIMING.retry + 0.1)
    assert arena.endpoints() == []
