"""The directory on this host that holds the snapshots of one cluster, and the check that it can be trusted.

A process trusts what its own user or root has written, in a directory and a file that no other user can write. So
another user can take the directory's name, and thus keep a process from using snapshots, but can do nothing else.

Two processes share a directory only if they would ask the same stores. Its name is a hash of the jobs' root, the
NameNodes behind a nameservice, ZooKeeper's servers and chroot, and the network in which these names are looked up:
containers can share memory without sharing the network. For ``file://`` the mounted file systems replace the network.
"""

import errno
import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ha.config.leadership_settings import SNAPSHOTS_OFF
from store.errors import Invalid
from store.lazy_imports import will_import
from store.traits import traits
from store.zookeeper.address import Address

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # the owner of what is in it is checked

ROOT = 0
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

LOCK = "lock"
AGENT = "agent"
WANTED = "want-"
LEADER = "leader-"


class SnapshotDirectory(msgspec.Struct, frozen=True):
    """A directory of snapshots; it need not exist."""

    base: Path  # holds one directory for each cluster
    cluster: str  # name of the directory in ``base``; also in every snapshot, to say which stores its agent asks
    boot: str  # identifies the boot clock; a snapshot from before a reboot has another one
    mode: int  # permissions of the directories if they have to be made

    @property
    def path(self) -> Path:
        """The directory itself."""
        return self.base / self.cluster


def snapshot_directory(setting: str, files: str, zookeeper: Address | None) -> SnapshotDirectory | None:
    """Return the directory of snapshots; None if snapshots are switched off, or this host has no boot id."""
    # `setting`: ``snapshots`` of the settings: a directory, ``off``, or empty for the default. `files`: the jobs' root
    # as a URI in its normal form. `zookeeper`: None if there is none.
    if setting == SNAPSHOTS_OFF:
        return None
    boot = _boot()
    if not boot:
        return None
    if setting:
        return SnapshotDirectory(Path(setting), cluster_of(files, zookeeper), boot, 0o755)
    return SnapshotDirectory(own_base(), cluster_of(files, zookeeper), boot, 0o700)


def own_base() -> Path:
    """Return where this user's processes keep what they share on this host until it is rebooted."""
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path("/tmp")  # noqa: S108  # as above
    return base / f"hybrid-ha-{os.geteuid()}"


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return f"{boot}.{_namespace('time')}"  # a container may have a boot clock of its own


def _namespace(kind: str) -> int:
    try:
        return Path("/proc/self/ns", kind).stat().st_ino
    except OSError:
        return 0


def cluster_of(files: str, zookeeper: Address | None) -> str:
    """Return a word that is the same for all processes of this host that would ask the same stores."""
    ensemble = (sorted(zookeeper.servers), zookeeper.chroot) if zookeeper is not None else ()
    seen_from = "mnt" if traits(files).local else "net"
    behind = [each for root in files.split(",") for each in _namenodes(root)]
    identity = (files, behind, ensemble, _namespace(seen_from))
    return hashlib.sha256(json.dumps(identity).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _namenodes(files: str) -> list[str]:
    """The NameNodes behind a nameservice, because two clusters' configurations can use the same name."""
    parts = urlsplit(files)
    kind = traits(files).address
    if not kind or parts.netloc.rpartition(":")[2].isdigit():
        return []
    will_import("store.hadoop_errors")
    from store import hadoop_errors as hadoop  # noqa: PLC0415  # only a nameservice needs it and its parser of XML

    try:
        return sorted(hadoop.namenodes(hadoop.configuration(), parts.netloc, kind))
    except Invalid:  # the first call of HDFS will report it
        return []


class OpenDirectory:
    """An open directory: a file opened in it is in it, even if somebody renames the directory meanwhile."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def open_directory(place: SnapshotDirectory, *, make: bool = False) -> OpenDirectory:
    """Open the directory, if only trusted users can write in it and in its base."""
    # OSError: it does not exist, or another user could write in it.
    if make:
        place.base.parent.mkdir(parents=True, exist_ok=True)
    base = OpenDirectory(_opened(place.base, place.mode, make=make))
    return OpenDirectory(_opened(place.cluster, place.mode, base.descriptor, make=make))


def _opened(path: Path | str, mode: int, at: int | None = None, *, make: bool) -> int:
    made = False
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, mode, dir_fd=at)
            made = True
    descriptor = _open(path, at)
    if made:
        os.fchmod(descriptor, mode)  # the umask may have taken it away from the users who are to read there
    return descriptor


def _open(path: Path | str, at: int | None = None) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    if not trusted(os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.EPERM, "Another user owns it, or could write in it", str(path))
    return descriptor


def trusted(status: os.stat_result) -> bool:
    """Whether only this process's user or root can have written it."""
    return status.st_uid in (os.geteuid(), ROOT) and not status.st_mode & OTHERS_MAY_WRITE
