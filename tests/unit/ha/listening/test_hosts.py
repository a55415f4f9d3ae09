"""Names in Host headers."""

import socket

import pytest

from ha.listening.hosts import HostCheck
from tests.unit.ha.waiting import wait_until


async def nothing(*_: object) -> None:
    """Answer nothing."""


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("", True), ("localhost", True), ("LOCALHOST:8300", True), ("localhost.", True), ("127.0.0.1:8300", True),
        ("10.9.8.7", True), ("[::1]:8300", True), ("given:8300", True), ("a.example.com", True),
        ("example.com", False), ("a.example.com.evil.org", False), ("evil.org:8300", False),
        ("localhost.evil.org", False), ("localhost:8300:1", False), ("[localhost", False),
        ("127.0.0.1.evil.org", False), ("*", False), ("*.example.com", True),
    ],
)  # fmt: skip
def test_only_names_that_are_known_and_addresses_are_answered(said: str, allowed: bool) -> None:
    assert HostCheck(nothing, ["given", "*.example.com"]).allows(said) is allowed


def test_this_hosts_own_names_are_known() -> None:
    check = HostCheck(nothing, [])
    assert check.allows(f"{socket.gethostname()}:8300")
    wait_until(lambda: check.allows(socket.getfqdn()))


def test_all_names_can_be_allowed() -> None:
    assert HostCheck(nothing, ["*"]).allows("evil.org")
