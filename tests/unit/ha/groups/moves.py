"""Moves of a job between two roots: processes that die at a change, who leads, and what the job holds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ha.groups.mover import Mover
from leader.layout import tree
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import NotFound, Unknown
from store.files import Entry
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.placement.roots import Roots

JOB = "orders"
OLD = "11111111-1111-4111-8111-111111111111"
NEW = "22222222-2222-4222-8222-222222222222"
FILES = {"spark/q/metadata": b"m", "spark/q/offsets/0": b"o", "spark/q/state/0/0/1.zip": b"state", "programs/1=a": b"p"}
NAMES = ("status=RUNNING", "checkpoints/q=0~1~1~5~6~7~8~", "history/0000000001-x~took-over~h1", "spark/q/commits")


class Process:
    """The files of one process. It dies at a change: before it, or after; then no call of it is answered any more."""

    def __init__(self, roots: Roots, dies_at: int | None = None, *, after: bool = False) -> None:
        self._roots, self._dies_at, self._after = roots, dies_at, after
        self.changes: list[str] = []
        self.dead = False
        self.group = SimpleNamespace(
            roots={uri: BoundedFiles(partial(Remote, self, roots.drivers[uri]), uri=uri) for uri in roots.uris}
        )

    def change(self, name: str, do: Callable[[], None]) -> None:
        self.check()
        if "/moving" in name or "arriving" in name.partition(" ")[0]:  # the copy itself can be repeated at any time
            return do()
        self.changes.append(name)
        if len(self.changes) - 1 == self._dies_at:
            self.dead = True
            if not self._after:
                raise Unknown("It died before.")
        do()
        assert len(leads(self._roots)) <= 1, f"two roots have the job after {name}"
        if self.dead:
            raise Unknown("It died after.")
        return None

    def check(self) -> None:
        if self.dead:
            raise Unknown("It is dead.")

    def close(self) -> None:
        for each in self.group.roots.values():
            each.close()


class Remote:
    def __init__(self, process: Process, driver: LocalFiles) -> None:
        self._process, self._driver, self.uri = process, driver, driver.uri

    def list(self, path: str) -> list[Entry]:
        self._process.check()
        return self._driver.list(path)

    def read(self, path: str, limit: int) -> bytes:
        self._process.check()
        return self._driver.read(path, limit)

    def make_root(self) -> None:
        self._process.check()
        self._driver.make_root()

    def make_directory(self, path: str) -> None:
        self._process.change(f"make {path}", lambda: self._driver.make_directory(path))

    def write(self, path: str, data: bytes) -> None:
        self._process.change(f"write {path}", lambda: self._driver.write(path, data))

    def rename(self, source: str, destination: str) -> None:
        self._process.change(f"rename {source} {destination}", lambda: self._driver.rename(source, destination))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._process.change(f"delete {path}", lambda: self._driver.delete(path, recursive=recursive))

    def close(self) -> None:
        pass


def leads(roots: Roots) -> list[str]:
    """The roots at which somebody could lead the job: they hold a leader directory with a lease."""
    return [uri for uri, driver in roots.drivers.items() if led(driver) is not None]


def led(driver: LocalFiles) -> tuple[LeaderDirectory, Lease] | None:
    try:
        leader, record = tree.read(driver, JOB)
    except NotFound:
        return None
    return (leader, record.lease) if record.lease is not None else None


def held(driver: LocalFiles) -> tuple[LeaderDirectory, Lease]:
    found = led(driver)
    assert found is not None, "nobody leads there"
    return found


def claim(driver: LocalFiles, contender: str) -> LeaderDirectory:
    """Lead as the protocol does: seize the lease, and rename the leader directory."""
    leader, lease = held(driver)
    new = LeaderDirectory(leader.epoch + 1, NEW)
    mine = Lease(lease.sequence + 1, Mode.HDFS, 6000, NEW, "", contender)
    record = f"{JOB}/{leader.name}/record"
    driver.rename(f"{record}/{lease.name}", f"{record}/{mine.name}")
    driver.rename(f"{JOB}/{leader.name}", f"{JOB}/{new.name}")
    return new


class Leading:
    """Leads at a root as the mover does; ``then`` happens while it leads."""

    def __init__(self, roots: Roots, then: Callable[[], object] = bool) -> None:
        self._roots, self._then = roots, then
        self.believes = True

    @contextmanager
    def __call__(self, root: str, contender: str) -> Iterator[Any]:
        leader = claim(self._roots.drivers[root], contender)
        self._then()
        yield SimpleNamespace(own=SimpleNamespace(leader=leader), is_leader=lambda: self.believes)


def mover(process: Process, roots: Roots, lead: Any = None, **options: Any) -> Mover:
    given: dict[str, Any] = {"zookeeper": None, "call_timeout": PATIENCE_S, "timeout": 0.0, **options}
    return Mover(process.group, JOB, lead or Leading(roots), **given)  # type: ignore[arg-type]


def home_of_job(roots: Roots, root: str) -> Path:
    """The job's leader directory at a root."""
    return roots.drivers[root].path / JOB / held(roots.drivers[root])[0].name


def content(roots: Roots, root: str) -> dict[str, bytes]:
    home = home_of_job(roots, root)
    return {str(each.relative_to(home)): each.read_bytes() for each in home.rglob("*") if each.is_file()}


def whole(roots: Roots, root: str) -> None:
    """The job lies at this root only, complete, and can be led with a higher epoch than ever before."""
    assert leads(roots) == [root]
    assert content(roots, root) == FILES
    home = home_of_job(roots, root)
    assert all((home / name).is_dir() for name in NAMES)
    for _ in range(2):
        assert roots.group().call("find", lambda files: tree.find(files, JOB), PATIENCE_S).name == home.name
