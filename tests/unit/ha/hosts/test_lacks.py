"""What a host lacks for a while."""

import errno

import pytest

from ha.hosts.lacks import lacks, patiently


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("_core.so: failed to map segment from shared object"), True),
        (ImportError("No module named 'ha'"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (RuntimeError("another one"), False),
    ],
)
def test_what_a_host_lacks_for_a_while_is_told_from_what_is_wrong(error: Exception, *, lacking: bool) -> None:
    assert lacks(error) is lacking


def test_what_is_lacked_is_waited_for_and_nothing_else() -> None:
    answers: list[Exception | str] = [
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
        "there",
        FileNotFoundError(),
        "never",
    ]

    def look() -> str:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    said = list[Exception]()
    assert patiently(look, 0.0, said.append) == "there"
    assert [type(each) for each in said] == [OSError], "once"
    with pytest.raises(FileNotFoundError):
        patiently(look, 0.0)
    assert answers == ["never"]
