"""What a host lacks for a while."""

import errno

import pytest

from ha.hosts.lacks import lacks


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (RuntimeError("another one"), False),
    ],
)
def test_what_a_host_lacks_for_a_while_is_told_from_what_is_wrong(error: Exception, *, lacking: bool) -> None:
    assert lacks(error) is lacking
