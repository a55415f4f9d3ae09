"""Lacks: this process can have no more threads, no more descriptors, or no more room, while a block lasts."""

import errno
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

MOUNT, UMOUNT = (shutil.which(each) or each for each in ("mount", "umount"))


@contextmanager
def no_thread_free(name: str = "") -> Iterator[None]:
    """Refuse each thread whose name begins so, as Python does when the host has none left."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith(name):
            raise RuntimeError("can't start new thread")
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        yield


@contextmanager
def no_descriptor_free(but: int = 0) -> Iterator[None]:
    """Take away all descriptors of this process that are left, but for so many."""
    limits, first = resource.getrlimit(resource.RLIMIT_NOFILE), os.open(os.devnull, os.O_RDONLY)
    os.close(first)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + but, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Make an empty folder a disk of its own while the block lasts, for :func:`fill`; skips where nobody may."""
    mount = [MOUNT, "-t", "tmpfs", "-o", "size=1m", "lacks", f"{folder}"]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, timeout=PATIENCE_S).returncode:
        pytest.skip("Only root makes a disk that can be filled.")
    try:
        yield
    finally:
        subprocess.run([UMOUNT, "--lazy", f"{folder}"], check=True, timeout=PATIENCE_S)


LARGEST = 1 << 30  # bytes: what has more room is no disk that a test has made


def fill(file: Path) -> None:
    """Fill the disk that this file is on, to the last byte."""
    with file.open("wb", buffering=0) as filled:
        size = 1 << 20
        while size:
            assert filled.tell() < LARGEST, f"{file} is on a disk of others"
            try:
                filled.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size >>= 1
