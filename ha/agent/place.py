"""Where the snapshots of one cluster lie on this host, and who is trusted there.

Trusted is what this process's own user has written, or root: in a directory and a file that nobody else can write. So
another user can keep a process from using snapshots, by taking the name of its directory, and can do nothing else.

Two processes share a directory only if they would ask the same stores: its name is made of the jobs' root, of the
NameNodes behind a nameservice, of ZooKeeper's servers and chroot, and of the network that these names are looked up in
(containers can share memory, and not the network). For ``file://`` it is the mounted file systems instead.
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

from ha.settings import SNAPSHOTS_OFF
from store.errors import Invalid
from store.zookeeper.address import Address

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # what lies there is checked for its owner before it is trusted

ROOT = 0
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

LOCK = "lock"
AGENT = "agent"
WANTED = "want-"
LEADER = "leader-"


class Place(msgspec.Struct, frozen=True):
    """A directory of snapshots.

    Attributes:
        base: holds one directory for each cluster.
        cluster: that one's name, and in every snapshot: which stores its agent asks.
        boot: since when, and where, the boot clock counts; a snapshot from before a reboot has another one.
        mode: of the directories, if they have to be made.
    """

    base: Path
    cluster: str
    boot: str
    mode: int

    @property
    def path(self) -> Path:
        """The directory itself."""
        return self.base / self.cluster


def place_of(setting: str, files: str, zookeeper: Address | None) -> Place | None:
    """Return where snapshots lie; None if they are switched off, or this host has no boot id.

    Args:
        setting: ``snapshots`` of the settings: a directory, ``off``, or empty for the default.
        files: the root's URI in its normal form.
        zookeeper: None if there is none.
    """
    if setting == SNAPSHOTS_OFF:
        return None
    boot = _boot()
    if not boot:
        return None
    if setting:
        return Place(Path(setting), _cluster(files, zookeeper), boot, 0o755)
    base = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path("/tmp")  # noqa: S108  # as above
    return Place(base / f"hybrid-ha-{os.geteuid()}", _cluster(files, zookeeper), boot, 0o700)


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


def _cluster(files: str, zookeeper: Address | None) -> str:
    ensemble = (sorted(zookeeper.servers), zookeeper.chroot) if zookeeper is not None else ()
    seen_from = "mnt" if files.startswith("file:") else "net"
    identity = (files, _namenodes(files), ensemble, _namespace(seen_from))
    return hashlib.sha256(json.dumps(identity).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _namenodes(files: str) -> list[str]:
    """What a nameservice stands for: two clusters' configurations can use the same name."""
    parts = urlsplit(files)
    if parts.scheme == "file" or parts.netloc.rpartition(":")[2].isdigit():
        return []
    from store import hadoop  # noqa: PLC0415  # only a nameservice needs it, and the parser of XML that it brings

    try:
        kind = "rpc-address" if parts.scheme == "hdfs" else "http-address"
        return sorted(hadoop.namenodes(hadoop.configuration(), parts.netloc, kind))
    except Invalid:  # whoever asks HDFS will say so
        return []


class Directory:
    """A place's directory, held open: what is opened in it is in it, whoever renames what meanwhile."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def open_directory(place: Place, *, make: bool = False) -> Directory:
    """Open the directory, if only trusted users can write in it, and in the one that holds it.

    Raises:
        OSError: it is not there, or somebody else could write in it.
    """
    if make:
        place.base.mkdir(mode=place.mode, parents=True, exist_ok=True)
    base = Directory(_open(place.base))
    if make:
        with suppress(FileExistsError):
            os.mkdir(place.cluster, place.mode, dir_fd=base.descriptor)
    return Directory(_open(place.cluster, base.descriptor))


def _open(path: Path | str, at: int | None = None) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    if not trusted(os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.EPERM, "Another user owns it, or could write in it", str(path))
    return descriptor


def trusted(status: os.stat_result) -> bool:
    """Whether only this process's user, or root, can have written it."""
    return status.st_uid in (os.geteuid(), ROOT) and not status.st_mode & OTHERS_MAY_WRITE
