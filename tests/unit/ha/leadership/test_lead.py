"""``ha.lead`` over a local directory: in this process, and in processes that are killed."""

import signal
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

import ha
from ha.config.sources import load
from ha.config.stores import Stores
from ha.program.deadline_file import DeadlineWriter
from leader.errors import Fenced, InvalidName, InvalidSettings, NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.job.versioned_files import VersionedBlob
from leader.layout.information import Record
from leader.layout.names import LeaderDirectory, newest
from store.clock import now
from store.errors import DeadlineExceeded, NotWritable
from store.local import LocalFiles
from tests.lacks import no_thread_free
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import SHORT_LEASES, Workplace
from tests.unit.ha.waiting import wait_until


def record(jobs: Path, job: str = "orders") -> tuple[LeaderDirectory, Record]:
    files = LocalFiles(jobs)
    directory = newest([entry.name for entry in files.list(job)])
    assert directory is not None
    return directory, Record.parse(entry.name for entry in files.list(f"{job}/{directory.name}/record"))


def test_a_block_that_leads(quick: Path) -> None:
    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S) as leadership:
        assert leadership.is_leader()
        directory, found = record(quick)
        assert (leadership.epoch, leadership.session_id) == (directory.epoch, directory.session_id)
        assert leadership.epoch == 1
        assert found.lease is not None
        assert found.lease.owner == leadership.session_id
        with ha.connect() as client:
            answer = client.leader("orders", PATIENCE_S)
        assert (answer.session_id, dict(answer.endpoints)) == (leadership.session_id, {"rest": "a:1"})
    assert not leadership.is_leader()
    assert record(quick)[1].released


@pytest.mark.usefixtures("quick")
def test_a_failure_is_kept_although_the_store_was_away_when_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a NameNode dies: queries fail just then."""
    monkeypatch.setattr("ha.leadership.leadership.KEEP_PAUSES_S", (0.0, 0.0))
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        add, away = leadership.exceptions.add, [DeadlineExceeded("no answer"), NotWritable("standby")]

        def keep(kind: str, message: str, **others: str) -> None:
            if away:
                raise away.pop()
            add(kind, message, **others)

        monkeypatch.setattr(leadership.exceptions, "add", keep)
        leadership.keep_failure("ValueError", "no such column")
        wait_until(lambda: [each.message for each in leadership.exceptions.list()] == ["no such column"])
        away.extend([NotWritable("standby")] * 3)
        leadership.keep_failure("ValueError", "for ever")
        wait_until(lambda: not away)
        assert len(leadership.exceptions.list()) == 1, "it has tried as often as it said"


@pytest.mark.usefixtures("quick")
def test_without_a_free_thread_a_failure_is_told_and_an_operator_is_obeyed(caplog: pytest.LogCaptureFixture) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        over = threading.Event()
        leadership.on_revoked(over.set)
        with no_thread_free("ha-"), closing(Stores(load({}))) as stores:
            leadership.keep_failure("ValueError", "no such column")
            leadership.await_failures()
            admin = JobAdmin(stores.files, None, PATIENCE_S)
            admin.ask_to_hand_over("orders")
            assert over.wait(PATIENCE_S), "the thread that ends the leadership works on"
    assert "a failure is not kept" in caplog.text


def test_each_block_has_an_epoch_and_a_session_of_its_own(quick: Path) -> None:
    seen = []
    for _ in range(3):
        with ha.lead("orders", timeout=PATIENCE_S) as leadership:
            seen.append((leadership.epoch, leadership.session_id))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert len({session_id for _, session_id in seen}) == 3
    assert quick.exists()


def test_paths_lie_below_the_leader_directory(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        directory, _ = record(quick)
        assert leadership.path("spark/daily") == f"{quick.as_uri()}/orders/{directory.name}/spark/daily"
        for bad in ("", "/", "/etc", "..", "a/../b", "a//b", "a/", "./a"):
            with pytest.raises(InvalidName, match="is not a path below the leader directory"):
                leadership.path(bad)


def test_confirm_publishes_other_endpoints(quick: Path) -> None:
    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S) as leadership:
        leadership.confirm({"rest": "a:2", "ui": "a:3"})
        directory, found = record(quick)
        published = found.published("orders", directory)
        assert published is not None
        assert dict(published.endpoints) == {"rest": "a:2", "ui": "a:3"}
        with pytest.raises(InvalidName):
            leadership.confirm({"a b": "x"})
        with pytest.raises(InvalidName, match="not empty"):
            leadership.confirm({"rest": ""})
        assert leadership.is_leader()


def test_confirming_the_present_endpoints_again_returns(quick: Path) -> None:
    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S) as leadership:
        started = now()
        leadership.confirm({"rest": "a:1"})
        assert now() - started < PATIENCE_S / 2
        assert leadership.is_leader()
    assert quick.exists()


def test_after_the_block_nothing_can_be_confirmed_or_written(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        assert leadership.checkpoints.next() == 1
    with pytest.raises(NotLeader):
        leadership.confirm({"rest": "zombie:1"})
    with ha.lead("orders", timeout=PATIENCE_S) as successor:
        assert successor.checkpoints.next() == 2
        zombie = LocalFiles(quick)
        assert leadership.directory not in successor.directory
        with pytest.raises(Exception, match="No such file"):
            zombie.make_directory(f"orders/{leadership.epoch:010d}-{leadership.session_id}/checkpoints/x=1")


def test_the_jobs_own_data_are_the_leaders_and_its_successors(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.status.change(ha.Status.CREATED, ha.Status.RUNNING)
        assert leadership.graph.put(b"plan") == 1
        leadership.blobs.put("model", b"x")
        leadership.results.put("run-1", ha.Status.FINISHED)
        leadership.status.change(ha.Status.RUNNING, ha.Status.FINISHED)
    with ha.lead("orders", timeout=PATIENCE_S) as successor:
        assert successor.graph.load() == VersionedBlob(1, b"plan")
        assert (successor.blobs.versions(), successor.results.dirty()) == ({"model": 1}, ["run-1"])
        successor.cleanup.clean()
        assert (successor.graph.load(), successor.results.dirty()) == (None, [])
        successor.cleanup.restore()
        assert successor.blobs.load("model") == VersionedBlob(1, b"x")
    assert quick.exists()


def test_a_zombies_checkpoints_are_fenced(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        before = f"orders/{leadership.epoch:010d}-{leadership.session_id}"
        LocalFiles(quick).rename(before, f"orders/{LeaderDirectory(7, leadership.session_id).name}")
        with pytest.raises(Fenced):
            leadership.checkpoints.next()
        with pytest.raises(Fenced):
            leadership.graph.put(b"zombie")
        with pytest.raises(Fenced):
            leadership.names("spark")


def test_on_revoked_is_called_last_one_first_and_at_once_if_it_is_too_late(quick: Path) -> None:
    called: list[str] = []
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        leadership.on_revoked(lambda: called.append("first"))
        leadership.on_revoked(lambda: called.remove("what is not there"))
        leadership.on_revoked(lambda: called.append("leads" if leadership.is_leader() else "last"))
    assert called == ["last", "first"], "a callback that fails is logged, and the others are called"
    leadership.on_revoked(lambda: called.append("late"))
    assert called == ["last", "first", "late"]
    assert quick.exists()


def test_resigning_frees_the_job_for_another(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S, contender="a") as leadership:
        leadership.resign()
        assert not leadership.is_leader()
        with ha.lead("orders", timeout=PATIENCE_S, contender="b") as successor:
            assert successor.epoch == 2
            assert not leadership.is_leader()
        leadership.resign()
    assert record(quick)[0].epoch == 2


def test_an_exception_in_the_block_gives_the_lease_back_and_goes_on(quick: Path) -> None:
    with pytest.raises(ZeroDivisionError), ha.lead("orders", timeout=PATIENCE_S):
        _ = 1 / 0
    assert record(quick)[1].released


def test_a_grant_that_does_not_come_in_time(quick: Path) -> None:
    with ha.lead("orders", timeout=PATIENCE_S, contender="a") as leadership:
        with pytest.raises(NotLeader, match=r"Job 'orders' was not granted to b in 0.3 s"):
            ha.lead("orders", timeout=0.3, contender="b").__enter__()
        assert leadership.is_leader()
    with ha.lead("orders", timeout=PATIENCE_S) as leadership:
        assert leadership.epoch == 2, "the one that gave up contends no more"
    assert quick.exists()


@pytest.mark.parametrize("job", ["", "..", "a/b", "ä", "a" * 129])
def test_a_bad_job(quick: Path, job: str) -> None:
    with pytest.raises(InvalidName):
        ha.lead(job)
    assert not quick.exists()


def test_bad_endpoints_and_settings_are_told_before_anything_is_touched(quick: Path) -> None:
    with pytest.raises(InvalidName):
        ha.lead("orders", {"a b": "x"})
    with pytest.raises(InvalidSettings, match="did you mean 'contender'"):
        ha.lead("orders", contendr="a")
    with pytest.raises(InvalidSettings, match="files:"):
        ha.lead("orders", files="nonsense").__enter__()
    assert not quick.exists()


def test_no_thread_is_left_behind(quick: Path) -> None:
    before = set(threading.enumerate())
    with ha.lead("orders", timeout=PATIENCE_S):
        pass

    def left() -> list[str]:
        return [each.name for each in set(threading.enumerate()) - before if each.name.startswith("ha-")]

    wait_until(lambda: not left())
    assert quick.exists()


def test_a_publication_after_the_end_is_not_mirrored(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would delete that mirror while the process and its session live on."""
    copied: list[bytes | None] = []
    with ha.lead("orders") as leadership:
        monkeypatch.setattr(leadership._mirror, "want", copied.append)
        assert leadership.checkpoints.next() == 1
        leadership._runtime.ask(lambda: None, PATIENCE_S)
        leadership.end()
        assert leadership.checkpoints.next() == 2
        leadership._runtime.ask(lambda: None, PATIENCE_S)
        assert [data is not None for data in copied] == [True, False]
    assert quick.exists()


def test_the_sidecars_leadership_is_taken(quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
    belief = DeadlineWriter(tmp_path / "belief")
    belief.write(now() + 100, now() + 200)
    told = {"HA_JOB": "orders", "HA_EPOCH": "4", "HA_SESSION_ID": session_id, "HA_BELIEF": str(belief.path)}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with ha.lead("orders", {"rest": "ignored:1"}) as leadership:
        assert leadership.is_leader()
        assert (leadership.epoch, leadership.session_id) == (4, session_id)
        assert leadership.path("spark/x") == f"{quick.as_uri()}/orders/{LeaderDirectory(4, session_id).name}/spark/x"
        with pytest.raises(NotLeader, match="The sidecar publishes the endpoints"):
            leadership.confirm({"rest": "a:1"})
        with pytest.raises(NotLeader, match="The sidecar leads job"):
            leadership.resign()
        belief.write(0.0, 0.0)
        assert not leadership.is_leader()
    assert not quick.exists(), "nothing was contended for"
    belief.close()
    with pytest.raises(NotLeader, match="The sidecar of job 'orders' is gone"):
        ha.lead("orders").__enter__()
    monkeypatch.setenv("HA_SPARK_JVM", "/x")  # that sidecar publishes checkpoints itself, and two must not
    with pytest.raises(InvalidSettings, match="leave --spark out"):
        ha.lead("orders").__enter__()


LEADS = """
import signal, sys, threading
import ha
with ha.lead("orders", {"rest": sys.argv[1]}, contender=sys.argv[1]) as leadership:
    print(leadership.epoch, flush=True)
    ended = threading.Event()
    leadership.on_revoked(ended.set)
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(0.1):
        pass
"""


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_the_second_process_gets_it_when_the_first_is_killed(workplace: Workplace) -> None:
    first = workplace.start(sys.executable, "-c", LEADS, "a")
    wait_until(lambda: first.output.read_text() == "1\n", what=first.said)
    second = workplace.start(sys.executable, "-c", LEADS, "b")
    with ha.connect(
        files=workplace.jobs.as_uri(), **{key: SHORT_LEASES[f"HA_{key.upper()}"] for key in SMALL}
    ) as client:
        assert client.leader("orders", PATIENCE_S).endpoints["rest"] == "a"
        first.send(signal.SIGKILL)
        first.wait()
        killed = now()
        wait_until(lambda: second.output.read_text() == "2\n", what=second.said)
        assert now() - killed <= float(SHORT_LEASES["HA_SHORT_TTL"]) + 1 + NOISE
        assert dict(client.leader("orders", PATIENCE_S).endpoints) == {"rest": "b"}
        second.send(signal.SIGTERM)
        assert second.wait() == 0
        with pytest.raises(NoLeader):
            client.report("orders", "", PAUSE)


SMALL = ("short_ttl", "long_ttl", "session_timeout")
NOISE = 5.0
"""Seconds that a busy machine may take for whatever it does besides."""
PAUSE = 0.3


def test_a_process_that_is_asked_to_end_gives_it_back_at_once(workplace: Workplace) -> None:
    first = workplace.start(sys.executable, "-c", LEADS, "a", HA_SHORT_TTL="60", HA_LONG_TTL="600")
    wait_until(lambda: first.output.read_text() == "1\n", what=first.said)
    second = workplace.start(sys.executable, "-c", LEADS, "b", HA_SHORT_TTL="60", HA_LONG_TTL="600")
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    wait_until(lambda: second.output.read_text() == "2\n", what=second.said)
