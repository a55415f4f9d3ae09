"""The snapshot finder: it trusts only a trusted user's agent, and only a snapshot of this job that is in time."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ha.agent.finder import (
    ASK_AGAIN,
    MAX_REMEMBERED,
    NO_WAIT_FOR,
    OPEN_AGAIN,
    TIME_ENOUGH,
    WANTED_EVERY,
    SnapshotFinder,
)
from ha.agent.snapshots import MAX_SNAPSHOT_BYTES, Origin, SnapshotWriter, decode, encode
from ha.config.snapshot_dir import LEADER, WANTED, SnapshotDirectory, snapshot_directory
from leader.layout.information import LeaderInformation
from leader.lookup.answers import Snapshot
from store.zookeeper.address import parse
from tests.unit.ha.clocks import At
from tests.unit.ha.led import session

AUDIT, FRESH = 30.0, 3.0
FILES = "file:///somewhere/jobs"


@pytest.fixture
def clock() -> At:
    return At(1000.0)


@pytest.fixture
def place(tmp_path: Path) -> SnapshotDirectory:
    found = snapshot_directory(str(tmp_path / "snapshots"), FILES, None)
    assert found is not None
    return found


@pytest.fixture
def writer(place: SnapshotDirectory) -> Iterator[SnapshotWriter]:
    made = SnapshotWriter(place, AUDIT)
    yield made
    made.close()


@pytest.fixture
def finder(place: SnapshotDirectory, clock: At) -> SnapshotFinder:
    return SnapshotFinder(place, AUDIT, clock)


def snapshot(at: float = 1000.0, epoch: int = 7, job: str = "orders") -> Snapshot:
    information = LeaderInformation(job, epoch, session(epoch), {"rest": "a:1"}, 2)
    return Snapshot(job, epoch, session(epoch), information, at, at + FRESH, verified=True)


def file_of(place: SnapshotDirectory, job: str = "orders") -> Path:
    return place.path / (LEADER + job)


def test_a_written_snapshot_is_found(writer: SnapshotWriter, finder: SnapshotFinder) -> None:
    nobody = Snapshot("bills", 3, session(3), None, 1000.0, 1003.0, verified=False)
    never = Snapshot("new", 0, "", None, 1000.0, 1003.0, verified=True)
    for each in (snapshot(), nobody, never):
        writer.write(each)
        assert finder.find(each.job) == each
        assert finder.find(each.job) is finder.find(each.job), "the same bytes are not read twice"
    assert finder.find("other") is None


def test_it_is_used_from_when_it_was_told_to_its_end(writer: SnapshotWriter, finder: SnapshotFinder, clock: At) -> None:
    writer.write(snapshot(at=1000.0))
    clock.at = 999.9
    assert finder.find("orders") is None, "told in the future: of another clock"
    clock.at = 1002.9
    assert finder.find("orders") is not None
    clock.at = 1003.0
    assert finder.find("orders") is None
    writer.write(snapshot(at=1003.0))
    assert finder.find("orders") == snapshot(at=1003.0)


def test_an_agent_that_corrects_late_is_not_heard(writer: SnapshotWriter, place: SnapshotDirectory, clock: At) -> None:
    writer.write(snapshot())
    assert SnapshotFinder(place, AUDIT, clock).find("orders") is not None
    assert SnapshotFinder(place, AUDIT - 1, clock).find("orders") is None


def test_another_boot_cluster_or_job(writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder) -> None:
    del writer
    ours = Origin(place.cluster, place.boot)
    for origin in (Origin("0" * 16, place.boot), Origin(place.cluster, "before.1"), Origin("", "")):
        file_of(place).write_bytes(encode(snapshot(), origin, AUDIT))
        assert finder.find("orders") is None
    file_of(place).write_bytes(encode(snapshot(job="bills"), ours, AUDIT))
    assert finder.find("orders") is None
    file_of(place).write_bytes(encode(snapshot(), ours, AUDIT))
    assert finder.find("orders") == snapshot()


def test_half_a_file_is_nothing(writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder) -> None:
    del writer
    ours = Origin(place.cluster, place.boot)
    whole = encode(snapshot(), ours, AUDIT)
    for end in range(len(whole)):
        for part in (whole[:end], whole[end + 1 :], whole[:end] + b"9" + whole[end + 1 :]):
            assert part == whole or decode(part, "orders", ours, AUDIT) is None
    for part in (b"", whole[:-1], whole + b" " * MAX_SNAPSHOT_BYTES):
        file_of(place).write_bytes(part)
        assert finder.find("orders") is None
    file_of(place).write_bytes(whole)
    assert finder.find("orders") == snapshot()


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_file_that_others_can_write_is_not_trusted(
    mode: int, writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder
) -> None:
    writer.write(snapshot())
    file_of(place).chmod(mode)
    assert finder.find("orders") is None


@pytest.mark.parametrize("which", ["base", "path"])
def test_a_directory_that_others_can_write_is_not_trusted(
    which: str, writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder, clock: At
) -> None:
    writer.write(snapshot())
    directory = getattr(place, which)
    directory.chmod(0o777)
    assert finder.find("orders") is None
    with pytest.raises(OSError, match="Another user"):
        SnapshotWriter(place, AUDIT)
    directory.chmod(0o755)
    clock.at += OPEN_AGAIN
    assert finder.find("orders") == snapshot()


@pytest.mark.parametrize("which", ["base", "path", "file"])
def test_a_link_is_not_followed(
    which: str, tmp_path: Path, writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder
) -> None:
    writer.write(snapshot())
    linked = file_of(place) if which == "file" else getattr(place, which)
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    assert finder.find("orders") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("which", ["base", "path", "file"])
def test_files_of_another_user_are_not_trusted(
    which: str, writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder
) -> None:
    writer.write(snapshot())
    owned = file_of(place) if which == "file" else getattr(place, which)
    os.chown(owned, 12345, 12345)
    assert finder.find("orders") is None


@pytest.mark.parametrize("kind", ["fifo", "directory", "nothing"])
def test_a_finder_never_blocks_on_something_that_is_no_file(
    kind: str, writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder
) -> None:
    del writer
    path = file_of(place)
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "directory":
        path.mkdir()
    assert finder.find("orders") is None


def test_a_directory_that_was_made_again(place: SnapshotDirectory, finder: SnapshotFinder, clock: At) -> None:
    first = SnapshotWriter(place, AUDIT)
    first.write(snapshot())
    assert finder.find("orders") is not None
    for path in place.path.iterdir():
        path.unlink()
    place.path.rmdir()
    with pytest.raises(FileNotFoundError):
        first.beat(1003.0, "")
    assert finder.find("orders") is None
    second = SnapshotWriter(place, AUDIT)
    second.write(snapshot(epoch=8))
    clock.at += OPEN_AGAIN
    finder.find("orders")  # finds nothing where it looked before, for the last time
    assert finder.find("orders") == snapshot(epoch=8)
    first.close()
    second.close()


def marks(place: SnapshotDirectory) -> set[str]:
    return {path.name.removeprefix(WANTED) for path in place.path.iterdir() if path.name.startswith(WANTED)}


def test_without_an_agent_nothing_is_made(place: SnapshotDirectory, finder: SnapshotFinder, clock: At) -> None:
    assert finder.ask("orders", 0.3) is None
    assert not place.base.exists()
    SnapshotWriter(place, AUDIT).close()
    clock.at += OPEN_AGAIN
    assert finder.ask("orders", 0.3) is None, "it is not there any more"
    assert not clock.slept
    assert not marks(place)


def test_an_agent_that_is_frozen_is_not_asked_for_long(
    writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder, clock: At
) -> None:
    writer.beat(clock.at + FRESH, "")
    assert finder.ask("orders", 0.3) is None
    assert sum(clock.slept) == pytest.approx(0.3)
    assert marks(place) == {"orders"}
    waited = len(clock.slept)
    clock.at += ASK_AGAIN
    assert list(writer.wanted()) == ["orders"]
    assert finder.ask("orders", 0.3) is None
    assert marks(place) == {"orders"}, "it is asked again,"
    assert len(clock.slept) == waited, "and not waited for"
    clock.at += NO_WAIT_FOR
    assert finder.ask("orders", 0.3) is None, "and by now there is no agent"
    assert len(clock.slept) == waited


def test_a_lookup_with_little_time_holds_up_no_other(writer: SnapshotWriter, finder: SnapshotFinder, clock: At) -> None:
    writer.beat(clock.at + 2 * ASK_AGAIN, "")
    assert finder.ask("orders", TIME_ENOUGH / 10) is None
    clock.at += ASK_AGAIN
    before = sum(clock.slept)
    assert finder.ask("orders", 0.3) is None
    assert sum(clock.slept) - before == pytest.approx(0.3)


def test_a_finder_waits_for_the_agents_snapshot(
    writer: SnapshotWriter, finder: SnapshotFinder, clock: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.beat(clock.at + FRESH, "")
    sleep = clock.sleep

    def answer(seconds: float) -> None:
        sleep(seconds)
        for job in writer.wanted():
            writer.write(snapshot(job=job))

    monkeypatch.setattr(clock, "sleep", answer)
    assert finder.ask("orders", 0.3) == snapshot()
    assert len(clock.slept) == 1


def test_a_reader_that_keeps_asking_marks_the_job_once_a_minute(
    writer: SnapshotWriter, place: SnapshotDirectory, finder: SnapshotFinder, clock: At
) -> None:
    for _ in range(2):
        writer.write(snapshot(at=clock.at))
        for _ in range(100):
            assert finder.find("orders") is not None
        assert list(writer.wanted()) == ["orders"]
        assert not marks(place)
        clock.at += WANTED_EVERY


def test_of_many_names_little_is_remembered(writer: SnapshotWriter, finder: SnapshotFinder) -> None:
    writer.write(snapshot())
    for number in range(3 * MAX_REMEMBERED):
        assert finder.find(f"job-{number}") is None
    assert len(finder._jobs) <= MAX_REMEMBERED
    assert finder.find("orders") == snapshot()


def test_one_of_two_writes_and_the_other_takes_its_place(place: SnapshotDirectory, finder: SnapshotFinder) -> None:
    first = SnapshotWriter(place, AUDIT)
    first.write(snapshot())
    with pytest.raises(BlockingIOError):
        SnapshotWriter(place, AUDIT)
    assert finder.find("orders") == snapshot()
    first.close()
    assert finder.find("orders") is None, "it takes away what nobody corrects any more"
    second = SnapshotWriter(place, AUDIT)
    second.close()


def test_files_of_a_killed_agent_are_removed(place: SnapshotDirectory) -> None:
    SnapshotWriter(place, AUDIT).close()
    for name in (LEADER + "gone", ".staged-leader-orders", "agent"):
        (place.path / name).write_bytes(b"x")
    writer = SnapshotWriter(place, AUDIT)
    assert {path.name for path in place.path.iterdir()} == {"lock"}
    writer.close()


def test_a_mark_that_names_no_job_is_removed_and_ignored(writer: SnapshotWriter, place: SnapshotDirectory) -> None:
    for name in ("..hidden", "a b", "ä", "x" * 129):
        (place.path / (WANTED + name)).touch()
    (place.path / (WANTED + "orders")).touch()
    assert list(writer.wanted()) == ["orders"]
    assert not marks(place)


def test_only_its_user_can_read_the_default_place(place: SnapshotDirectory, writer: SnapshotWriter) -> None:
    del writer
    default = snapshot_directory("", FILES, None)
    assert default is not None
    assert default.mode == 0o700
    assert str(os.geteuid()) in default.base.name
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o755, "a directory that was named is for all to read"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_directory_that_was_named_is_for_all_to_read_whatever_the_umask(place: SnapshotDirectory) -> None:
    """As a unit with `UMask=0077` has it, whose agent serves the processes of all users."""
    with closing(SnapshotWriter(place, AUDIT)) as writer:
        writer.write(snapshot())
        made = (place.base, place.path, place.path / f"{LEADER}orders")
        assert [oct(stat.S_IMODE(each.stat().st_mode)) for each in made] == ["0o755", "0o755", "0o644"]


def test_each_cluster_has_a_directory_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def cluster(files: str, zookeeper: str = "") -> str:
        found = snapshot_directory("/base", files, parse(zookeeper, "/hybrid-ha") if zookeeper else None)
        assert found is not None
        return found.cluster

    distinct = [
        cluster("hdfs://a:8020/ha"),
        cluster("hdfs://a:8020/other"),
        cluster("hdfs://b:8020/ha"),
        cluster("webhdfs://a:8020/ha"),
        cluster("hdfs://a:8020/ha", "z1:2181,z2:2181"),
        cluster("hdfs://a:8020/ha", "z1:2181,z2:2181/other"),
        cluster("hdfs://a:8020/ha", "z1:2181"),
        cluster("file:///ha"),
    ]
    assert len(set(distinct)) == len(distinct)
    assert cluster("hdfs://a:8020/ha", "z2,z1:2181/hybrid-ha") == distinct[4], "the same ensemble in other words"

    seen = set()
    for host in ("one", "two"):
        (tmp_path / "hdfs-site.xml").write_text(
            "<configuration><property><name>dfs.ha.namenodes.ns</name><value>n</value></property><property>"
            f"<name>dfs.namenode.rpc-address.ns.n</name><value>{host}:8020</value></property></configuration>"
        )
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        seen.add(cluster("hdfs://ns/ha"))
    assert len(seen) == 2, "one name for two nameservices"


def test_switched_off_there_is_no_place() -> None:
    assert snapshot_directory("off", FILES, None) is None
