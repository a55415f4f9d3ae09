"""Publishing by a fenced rename: whole, once, never from a fenced driver, and exactly where an output was to be."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.leadership import fenced_rename
from ha.leadership.fenced_rename import common_root
from ha.leadership.leadership import Leadership
from leader.errors import Fenced, InvalidName, InvalidSettings
from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files
from store.open import driver_of
from tests.system.spark.helpers import fence, leading
from tests.unit.leader.faulty import LATE, LOST, OK, REFUSED, FaultyFiles


class Job:
    def __init__(self, root: str, leadership: Leadership) -> None:
        self.leadership = leadership
        self.direct = driver_of(root)()
        self.final = f"{root}/out/2026/report"

    def stage(self, content: bytes, path: str = "work/report") -> str:
        at = self.leadership.path(path).removeprefix(self.direct.uri).lstrip("/")
        fenced_rename.make_parents(self.direct, at.rpartition("/")[0])
        self.direct.write(at, content)
        return self.leadership.path(path)

    def published(self) -> bytes | None:
        try:
            return self.direct.read("out/2026/report", 100)
        except NotFound:
            return None


@pytest.fixture(params=["file", pytest.param("hdfs", marks=pytest.mark.hdfs)])
def led(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    root = tmp_path.as_uri() if request.param == "file" else f"{request.getfixturevalue('hdfs_uri')}/{uuid.uuid4().hex}"
    with leading("orders", f"{root}/jobs") as leadership:
        yield Job(root, leadership)


def test_staged_data_is_published_once(led: Job) -> None:
    assert led.leadership.publish(led.stage(b"first"), led.final)
    assert led.published() == b"first"
    assert not led.leadership.publish(led.stage(b"second"), led.final)
    assert led.published() == b"first"
    with pytest.raises(NotFound):
        led.leadership.publish(led.leadership.path("work/report"), led.final)


def test_a_directory_is_published_whole(led: Job) -> None:
    led.stage(b"a", "work/all/a")
    led.stage(b"b", "work/all/b")
    assert led.leadership.publish(led.leadership.path("work/all"), led.final)
    assert sorted(entry.name for entry in led.direct.list("out/2026/report")) == ["a", "b"]


def test_a_fenced_driver_that_stages_again_publishes_nothing(led: Job) -> None:
    fence(led.leadership)
    with pytest.raises(Fenced, match="Epoch 1 of job 'orders' is over"):
        led.leadership.publish(led.stage(b"late"), led.final)
    assert led.published() is None


@pytest.mark.parametrize("staged", ["", "record", "record/lease", "spark/orders", "status=RUNNING", "work/../record"])
def test_unpublishable_data_is_refused(led: Job, staged: str) -> None:
    with pytest.raises(InvalidName, match="stage it at leadership"):
        led.leadership.publish(f"{led.leadership.directory}/{staged}", led.final)


def test_a_target_may_be_named_as_viewfs_mounts_it(led: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "<property><name>fs.viewfs.mounttable.c.link./out</name><value>{}</value></property>"
    (tmp_path / "core-site.xml").write_text(
        f"<configuration>{entry.format(led.final.rpartition('/')[0])}</configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert led.leadership.publish(led.stage(b"first"), "viewfs://c/out/report")
    assert led.published() == b"first"
    with pytest.raises(InvalidSettings, match="no mount point of 'c'"):
        led.leadership.publish(led.stage(b"second"), "viewfs://c/other/report")


def test_an_unreachable_target_is_refused(led: Job) -> None:
    staged = led.stage(b"first")
    beside_its_record = f"{led.leadership.directory.rpartition('/')[0]}/report"
    for final in ("hdfs://elsewhere:1/report", beside_its_record, led.leadership.path("report")):
        with pytest.raises(InvalidSettings, match="choose a directory"):
            led.leadership.publish(staged, final)
    with pytest.raises(InvalidName):
        led.leadership.publish(led.final, f"{led.final}-copy")


@pytest.mark.parametrize(
    "fates", [[OK, OK, LOST], [OK, OK, OK, LOST], [OK, OK, LATE, OK, LATE], [LOST] * 4, [OK, OK, *[REFUSED] * 20]]
)
def test_lost_answers_are_found_out(fates: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hurt = FaultyFiles(tmp_path)

    def hurt_files(*_: object) -> BoundedFiles:
        driver: Files = hurt
        return BoundedFiles(lambda: driver)

    monkeypatch.setattr(Leadership, "open_files", hurt_files)
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        led = Job(tmp_path.as_uri(), leadership)
        staged = led.stage(b"first")
        hurt.fates.extend(fates)
        assert leadership.publish(staged, led.final)
        hurt.catch_up()
        assert led.published() == b"first"
        assert leadership.names("staged/1") == []


LEADER = "hdfs://names:8020/ha/orders/leader"


@pytest.mark.parametrize("name", ["50%41", "a b", "a,b", "[x]{1}&'^", "日🚀", "it\x92s"])
def test_nothing_of_a_name_is_lost(name: str) -> None:
    assert common_root(LEADER, f"hdfs://names:8020/out/{name}") == (
        "hdfs://names:8020/",
        "ha/orders/leader",
        f"out/{name}",
    )


@pytest.mark.parametrize("name", ["x#1", "y?z", "x#", "x ", "a\tb"])
def test_a_name_of_which_something_would_be_lost_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettings, match=r"output: .* (where a URI's path ends|has white space)"):
        common_root(LEADER, f"hdfs://names:8020/out/{name}")
