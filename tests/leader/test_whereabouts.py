"""Where a process says that it listens, and what it says there."""

import pytest

from leader.whereabouts import GREETING_BYTES, Whereabouts, decode, encode, greeted_by

PROCESS = "0123456789abcdef" * 2
WHERE = Whereabouts("10.0.0.1", 4711, PROCESS)


@pytest.mark.parametrize("where", [WHERE, Whereabouts("2001:db8::1", 65535, PROCESS), Whereabouts("::1", 1, PROCESS)])
def test_what_is_written_is_read_back(where: Whereabouts) -> None:
    assert decode(encode("host-1.example", where)) == where


def test_who_listens_nowhere_gives_its_name_alone() -> None:
    assert encode("a", None) == b"a"
    assert decode(b"a") is None


@pytest.mark.parametrize(
    "data",
    [
        f"a 10.0.0.1 4711 {PROCESS} ",
        f"a 10.0.0.1 4711 {PROCESS}\n",
        f"a 10.0.0.1 65536 {PROCESS}",
        f"a 10.0.0.1 04711 {PROCESS}",
        f"a 10.0.0.01 4711 {PROCESS}",
        f"a 10.0.0 4711 {PROCESS}",
        f"a localhost 4711 {PROCESS}",
        f"a fe80::1%eth0 4711 {PROCESS}",
        f"a 2001:DB8::1 4711 {PROCESS}",
        f"a 0:0:0:0:0:0:0:1 4711 {PROCESS}",
        f"a 10.0.0.1 4711 {PROCESS.upper()}",
        f"a 10.0.0.1 4711 {PROCESS[1:]}",
        f"a\0 10.0.0.1 4711 {PROCESS}",
        "",
    ],
)
def test_what_nobody_has_written_like_that_says_nothing(data: str) -> None:
    assert decode(data.encode()) is None


def test_the_greeting_tells_who_it_is_and_nothing_else_is_one() -> None:
    assert greeted_by(WHERE.greeting) == PROCESS
    assert len(WHERE.greeting) == GREETING_BYTES
    for said in (b"", WHERE.greeting[:-1], WHERE.greeting + b"x", b"SSH-2.0-OpenSSH_9.2\r\n", WHERE.greeting.upper()):
        assert greeted_by(said) is None
