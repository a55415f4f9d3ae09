"""The agent, over real files of this host: its readers get its answers, and lookups go on without it."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.agent.agent import ASKS_WITHIN_S, Agent, snapshot_of
from ha.agent.standalone import agent_of, reader_of
from ha.agent.warmer import KEPT_FOR, MAX_JOBS, Warmer
from ha.client import Client
from ha.config.settings import Settings
from ha.config.snapshot_dir import LEADER
from ha.config.sources import load
from ha.config.stores import Stores
from ha.spark.worker import CachingClient
from leader.errors import NoLeader, Unreachable
from leader.layout.information import LeaderInformation
from leader.lookup.answers import Answer, Known, Look, Source
from leader.lookup.rate_limit import JOB_PAUSE_S
from leader.lookup.reader import Reader
from store.clock import now
from store.files import Entry
from store.local import LocalFiles
from tests.lacks import no_thread_free
from tests.limits import joined
from tests.patience import PATIENCE_S
from tests.unit.ha.clocks import At
from tests.unit.ha.led import Led, session
from tests.unit.ha.waiting import wait_until

LONG = 20.0
"""Seconds that snapshots are fresh where a test must not meet one that has run out on a busy machine."""


@pytest.fixture
def settings(quick: Path, tmp_path: Path) -> Settings:
    del quick
    return load({"snapshots": str(tmp_path / "snapshots"), "audit": 10 * LONG})


class Host:
    """Agents of one host, each with its own stores, as processes have them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stores: list[Stores] = []
        self._agents: list[Agent] = []

    def agent(self, *jobs: str, settings: Settings | None = None) -> Agent:
        stores = Stores(settings or self.settings)
        made = agent_of(stores, reader_of(stores), jobs)
        self._stores.append(stores)
        self._agents.append(made)
        made.start()
        return made

    def writing(self, *jobs: str) -> Agent:
        made = self.agent(*jobs)
        wait_until(lambda: made.writes, what="it writes")
        return made

    def keeping(self, led: Led) -> Agent:
        led.claim("orders", "a:1")
        made = self.writing("orders")
        wait_until(self.told("orders"))
        return made

    def told(self, job: str) -> Callable[[], bool]:
        return lambda: bool(list(Path(self.settings.leadership.snapshots).glob(f"*/{LEADER}{job}")))

    def end(self) -> None:
        for agent in self._agents:
            agent.close()
        for stores in self._stores:
            stores.close()


@pytest.fixture
def host(settings: Settings) -> Iterator[Host]:
    made = Host(settings)
    yield made
    made.end()


class Counting:
    """Counts the lists of a job's directory that this process's stores are asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.broken = False
        listing = LocalFiles.list

        def count(files: LocalFiles, path: str) -> list[Entry]:
            self.asked.append(path)
            if self.broken:
                raise OSError("broken on purpose")
            return listing(files, path)

        monkeypatch.setattr(LocalFiles, "list", count)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    with Client(settings) as made:
        yield made


def told(answer: Answer) -> tuple[int, str, str, Source]:
    return answer.epoch, answer.session_id, answer.endpoints["rest"], answer.source


def test_a_job_that_was_named_is_answered_from_its_snapshot(led: Led, host: Host, client: Client) -> None:
    host.keeping(led)
    answer = client.leader("orders", PATIENCE_S)
    assert told(answer) == (1, session(1), "a:1", Source.SNAPSHOT)
    assert answer.verified
    assert 0 <= answer.age < LONG


def test_a_job_that_nobody_named_is_kept_once_somebody_asks(led: Led, host: Host, client: Client) -> None:
    led.claim("orders", "a:1")
    host.writing()
    assert client.leader("orders", PATIENCE_S).epoch == 1
    wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)


def test_an_agents_answer_asks_no_store(led: Led, host: Host, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = host.keeping(led)
    counting = Counting(monkeypatch)
    agent.warmer.close()  # its own looks are not to be counted
    wait_until(lambda: not any(thread.name.startswith("ha-warm") for thread in threading.enumerate()))
    counting.asked.clear()
    for _ in range(100):
        assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
    assert not counting.asked


def test_a_client_with_an_agent_opens_no_session(led: Led, settings: Settings) -> None:
    away = settings.replace(zookeeper="127.0.0.1:1")
    host = Host(away)
    host.keeping(led)
    with Client(away) as client:
        assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
        zookeeper = client._stores.zookeeper
        assert zookeeper is not None
        assert not zookeeper._started
    with Client(settings) as other:
        assert other.leader("orders", PATIENCE_S).source is Source.HDFS, "that is another cluster"
    host.end()


@pytest.mark.slow
def test_the_next_leader_and_none_at_all(led: Led, host: Host, client: Client) -> None:
    host.keeping(led)
    assert client.leader("orders", PATIENCE_S).epoch == 1
    led.publish("orders", "a:2", version=2)
    wait_until(lambda: told(client.leader("orders", PATIENCE_S)) == (1, session(1), "a:2", Source.SNAPSHOT))
    led.claim("orders", "b:1")
    wait_until(lambda: told(client.leader("orders", PATIENCE_S)) == (2, session(2), "b:1", Source.SNAPSHOT))
    led.release("orders")

    def nobody() -> bool:
        try:
            client.leader("orders", 0.001)
        except NoLeader as error:
            return "the last epoch was 2" in str(error)
        except Unreachable:  # the machine is busy: a millisecond was not enough
            pass
        return False

    wait_until(nobody)
    led.claim("orders", "c:1")
    wait_until(lambda: not nobody())
    assert client.leader("orders", PATIENCE_S).epoch == 3


def test_a_reader_that_knew_a_leader_waits_for_the_agents_next_one(led: Led, host: Host, client: Client) -> None:
    host.keeping(led)
    client.leader("orders", PATIENCE_S)
    led.release("orders")
    timer = threading.Timer(0.0, lambda: led.claim("orders", "b:1"))
    timer.start()
    wait_until(lambda: client.leader("orders", PATIENCE_S).epoch == 2)
    joined(timer)
    assert client.leader("orders", PATIENCE_S).endpoints["rest"] == "b:1"


def test_a_job_that_is_not_there_has_no_leader(host: Host, client: Client) -> None:
    host.writing("orders")
    wait_until(host.told("orders"))
    with pytest.raises(NoLeader, match="never had a leader"):
        client.leader("orders", PATIENCE_S)


def test_a_watch_is_told_what_the_agent_hears(led: Led, host: Host, client: Client) -> None:
    host.keeping(led)
    answers = client.watch("orders")
    first = next(answers)
    assert first is not None
    assert told(first) == (1, session(1), "a:1", Source.SNAPSHOT)
    led.claim("orders", "b:1")
    second = next(answers)
    second = second or next(answers)
    assert second is not None
    assert told(second) == (2, session(2), "b:1", Source.SNAPSHOT)


def test_a_worker_reads_snapshots_and_does_not_go_back_when_there_are_none(
    led: Led, host: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.flat().items():
        monkeypatch.setenv(f"HA_{name.upper()}", str(value))
    led.claim("orders", "a:1")
    worker = CachingClient(())
    try:
        assert worker.leader("orders").source is Source.HDFS, "which it keeps in memory now"
        agent = host.writing("orders")
        led.claim("orders", "b:1")
        wait_until(lambda: told(worker.leader("orders")) == (2, session(2), "b:1", Source.SNAPSHOT))
        agent.close()
        answer = worker.leader("orders")
        assert told(answer) == (2, session(2), "b:1", Source.HDFS)
    finally:
        worker.close()


def test_an_agent_that_names_nobody(led: Led, host: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings.flat().items():
        monkeypatch.setenv(f"HA_{name.upper()}", str(value))
    led.claim("orders", "a:1")
    led.release("orders")
    host.writing("orders")
    wait_until(host.told("orders"))
    worker = CachingClient(())
    try:
        with pytest.raises(NoLeader, match="the last epoch was 1"):
            worker.leader("orders")
        assert not worker._leaders, "nothing of it is kept: the agent will know better soon"
    finally:
        worker.close()


def test_a_snapshot_older_than_what_is_known_is_not_taken(led: Led, host: Host, client: Client) -> None:
    agent = host.keeping(led)
    assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
    agent.warmer.close()
    led.claim("orders", "b:1")
    assert client.report("orders", session(1), PATIENCE_S).epoch == 2
    answer = client.leader("orders", PATIENCE_S)
    assert (answer.epoch, answer.source) == (2, Source.HDFS), "the snapshot of epoch 1 is in time still"


def test_a_snapshot_of_what_was_never_claimed_locks_nobody_out(
    led: Led, host: Host, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper can lie to an agent. When HDFS has corrected the agent, its readers must follow."""
    led.claim("orders", "a:1")
    agent = host.writing()
    answer = Answer("orders", 999, session(999), {"rest": "liar:1"}, Source.ZOOKEEPER, 0.0, verified=False)
    information = LeaderInformation("orders", 999, session(999), {"rest": "liar:1"})
    at = now()
    lie = Known(999, session(999), information, Source.ZOOKEEPER, at, at, at, verified=False)
    with monkeypatch.context() as patch:
        patch.setattr(agent.warmer, "keeps", lambda _: True)
        agent._write("orders", Look(at, answer, reached=True, known=lie))
    assert client.leader("orders", PATIENCE_S).epoch == 999
    agent.warmer.want("orders")
    wait_until(lambda: client.leader("orders", PATIENCE_S).epoch == 1)
    assert client.leader("orders", PATIENCE_S).verified
    wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)


def test_a_look_that_took_too_long_is_too_old_when_it_is_written() -> None:
    """An agent that was frozen between asking and writing does not make the answer new."""
    information = LeaderInformation("orders", 1, session(1), {"rest": "a:1"})
    known = Known(1, session(1), information, Source.ZOOKEEPER, 104.0, 104.0, 104.0, verified=True)
    answer = Answer("orders", 1, session(1), {"rest": "a:1"}, Source.ZOOKEEPER, 0.0, verified=True)
    for look in (Look(100.0, None, reached=True, known=None), Look(100.0, answer, reached=True, known=known)):
        assert snapshot_of("orders", look, 3.0).good_until == 103.0


def test_that_nobody_leads_is_good_until_hdfs_should_have_been_asked_again() -> None:
    """Found by the simulator: the look only repeats what HDFS said before, and its agent falls asleep."""
    look = Look(100.0, None, reached=True, known=None, asked=98.0)
    assert snapshot_of("orders", look, 3.0).good_until == pytest.approx(98.0 + JOB_PAUSE_S + ASKS_WITHIN_S)
    assert snapshot_of("orders", look, 0.5).good_until == 100.5


def test_an_agent_that_ends_is_missed_by_nobody(led: Led, host: Host, client: Client) -> None:
    agent = host.keeping(led)
    assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
    agent.close()
    assert told(client.leader("orders", PATIENCE_S)) == (1, session(1), "a:1", Source.HDFS)
    host.writing("orders")
    wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)


def test_the_next_agent_takes_over_with_the_jobs_it_was_given(led: Led, host: Host, client: Client) -> None:
    led.claim("orders", "a:1")
    led.claim("bills", "b:1")
    first = host.writing("orders")
    second = host.agent("bills")
    wait_until(host.told("bills"), what="the one that writes keeps the other's jobs, too")
    assert not second.writes
    first.close()
    wait_until(lambda: second.writes)
    wait_until(lambda: client.leader("bills", PATIENCE_S).source is Source.SNAPSHOT)


class Rests(threading.Event):
    """Remembers for how long its owner wanted to rest, and wakes it sooner."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[float | None] = set()

    def wait(self, timeout: float | None = None) -> bool:
        self.asked.add(timeout)
        return super().wait(0.01)


def test_an_agent_that_waits_for_its_turn_wakes_once_a_second(host: Host) -> None:
    """Every sidecar of a host has one: five times a second was more than half of what a sidecar cost at rest."""
    writes, waits = host.writing(), host.agent()
    for each in (writes, waits):
        each._stop = Rests()
    wait_until(lambda: all(isinstance(each._stop, Rests) and each._stop.asked for each in (writes, waits)))
    assert [each._stop.asked for each in (writes, waits) if isinstance(each._stop, Rests)] == [{0.05}, {1.0}]


def test_a_directory_that_cannot_be_written(led: Led, host: Host, client: Client, settings: Settings) -> None:
    Path(settings.leadership.snapshots).write_text("a file is in the way")
    led.claim("orders", "a:1")
    agent = host.agent("orders")
    wait_until(lambda: agent._outage.lasts)
    assert told(client.leader("orders", PATIENCE_S)) == (1, session(1), "a:1", Source.HDFS)
    Path(settings.leadership.snapshots).unlink()
    wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["deletes", "renames"])
def test_a_lost_directory_is_made_again(what: str, led: Led, host: Host, client: Client, settings: Settings) -> None:
    host.keeping(led)
    (path,) = Path(settings.leadership.snapshots).iterdir()
    assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
    if what == "deletes":
        shutil.rmtree(path)
    else:
        path.rename(path.with_name("elsewhere"))
    assert client.leader("orders", PATIENCE_S).epoch == 1
    wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT and path.exists())
    with Client(settings) as other:
        wait_until(lambda: other.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)


def test_switched_off_nothing_is_written_nor_read(led: Led, host: Host, settings: Settings) -> None:
    off = settings.replace(snapshots="off")
    host.keeping(led)
    with Client(off) as client:
        assert client.leader("orders", PATIENCE_S).source is Source.HDFS
    agent = host.agent("orders", settings=off)
    assert agent.warmer.want("orders"), "its HTTP API answers nevertheless"
    wait_until(lambda: agent.latest("orders"))
    assert not agent.writes


def test_while_no_store_answers_the_snapshot_is_good_until_its_deadline_and_then_nothing_is(
    led: Led, quick: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    del quick
    brief = settings.replace(audit=10.0)
    host = Host(brief)
    host.keeping(led)
    counting = Counting(monkeypatch)
    counting.broken = True
    with Client(brief) as client:

        def unreachable() -> bool:
            try:
                client.leader("orders", PATIENCE_S)
            except Unreachable as error:
                return "File system:" in str(error)
            return False

        wait_until(unreachable)
        counting.broken = False
        wait_until(lambda: client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT)
    host.end()


def test_a_forked_child_reads_snapshots_as_its_parent_does(led: Led, host: Host, client: Client) -> None:
    host.keeping(led)
    assert client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if client.leader("orders", PATIENCE_S).source is Source.SNAPSHOT else 1)
        except BaseException:  # noqa: BLE001  # whatever it is, the child must not run the other tests
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Still:
    def looks(self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = 1.0) -> Iterator[Look]:
        del timeout, every
        yield Look(now(), None, reached=bool(job), known=None)
        stop.wait()


def test_no_more_jobs_are_kept_than_there_is_room_for() -> None:
    clock, seen = At(), list[str]()
    still: Reader = Still()  # type: ignore[assignment]
    warmer = Warmer(still, 1.0, lambda job, _: seen.append(job), clock)
    assert all(warmer.want(f"job-{number}") for number in range(MAX_JOBS))
    assert not warmer.want("one-more")
    assert warmer.want("job-0"), "it is kept already"
    clock.at += KEPT_FOR
    assert warmer.want("job-1")
    clock.at += 1.0
    assert len(warmer.forget()) == MAX_JOBS - 1
    with no_thread_free():
        assert not warmer.want("one-more"), "it would never be looked at"
    assert warmer.jobs == ["job-1"]
    assert warmer.want("one-more")
    wait_until(lambda: "one-more" in seen)
    warmer.close()
    assert not warmer.want("job-1")
