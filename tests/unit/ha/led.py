"""Jobs whose files look as if they had leaders: readers see what they see of real ones."""

from pathlib import Path

from leader.layout import tree
from leader.layout.information import LeaderInformation, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory, newest
from leader.layout.tree import NOBODY
from store.local import LocalFiles


def session(epoch: int) -> str:
    return f"{epoch:08x}-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


class Led:
    """Writes the files of leaders; each holds its lease for an hour."""

    def __init__(self, root: Path) -> None:
        self.files = LocalFiles(root, durable=False)

    def claim(self, job: str, address: str, *, by: str = "", contender: str = "a") -> int:
        """Let the next leader take over, with one address; returns its epoch."""
        if not (Path(self.files.uri.removeprefix("file://")) / job).exists():
            tree.create(self.files, job)
        old = self._directory(job)
        new = LeaderDirectory(old.epoch + 1, by or session(old.epoch + 1))
        self._lease(job, Mode.HDFS, new.session_id, contender)
        self.files.rename(f"{job}/{old.name}", f"{job}/{new.name}")
        self.publish(job, address)
        return new.epoch

    def publish(self, job: str, address: str, version: int = 1) -> None:
        directory = self._directory(job)
        said = LeaderInformation(job, directory.epoch, directory.session_id, {"rest": address}, version)
        for entry in endpoint_entries(said):
            self.files.make_directory(f"{job}/{directory.name}/record/{entry.name}")

    def release(self, job: str) -> None:
        self._lease(job, Mode.RELEASED, self._directory(job).session_id)

    def _lease(self, job: str, mode: Mode, owner: str, contender: str = "a") -> None:
        record = f"{job}/{self._directory(job).name}/record"
        (held,) = [lease for entry in self.files.list(record) if (lease := Lease.parse(entry.name)) is not None]
        ttl_ms = 3_600_000 if mode is Mode.HDFS else 0
        self.files.rename(
            f"{record}/{held.name}", f"{record}/{Lease(held.sequence + 1, mode, ttl_ms, owner, '', contender).name}"
        )

    def _directory(self, job: str) -> LeaderDirectory:
        return newest([entry.name for entry in self.files.list(job)]) or LeaderDirectory(0, NOBODY)
