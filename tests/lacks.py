"""Lacks: this process can have no more threads, or no more descriptors, while a block lasts."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


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
def no_descriptor_free() -> Iterator[None]:
    """Take away all descriptors of this process that are left."""
    limits, first = resource.getrlimit(resource.RLIMIT_NOFILE), os.open(os.devnull, os.O_RDONLY)
    os.close(first)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
