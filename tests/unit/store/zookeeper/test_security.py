"""Security of the ZooKeeper client: whose nodes are closed, and what a file with a password must say."""

import importlib.util
import logging
from pathlib import Path

import pytest
from kazoo.protocol.serialization import Auth

from store.errors import Invalid
from store.zookeeper.driver import QuietLog
from store.zookeeper.login import access_list
from store.zookeeper.security import CredentialsError, Security, read_credentials


@pytest.mark.parametrize(
    ("security", "closed"),
    [
        (Security(), False),
        (Security(ca="/ca"), False),
        (Security(auth="digest", credentials="/x"), True),
        (Security(auth="kerberos"), True),
        (Security(ca="/ca", certificate="/c"), True),
        (Security(auth="kerberos", acl="open"), False),
        (Security(auth="kerberos", acl="creator"), True),
    ],
)
def test_nodes_are_closed_as_soon_as_zookeeper_is_told_who_creates(security: Security, closed: bool) -> None:
    assert security.closed is closed
    assert (access_list(security) is not None) is closed


def test_readers_may_read_and_nothing_else() -> None:
    security = Security(auth="kerberos", acl="creator,sasl:reports, digest:a:b=,world:anyone")
    assert security.reader_ids() == [("sasl", "reports"), ("digest", "a:b="), ("world", "anyone")]
    creator, *readers = access_list(security) or []
    assert (creator.id.scheme, creator.perms) == ("auth", 31)
    assert [(each.id.scheme, each.id.id, each.perms) for each in readers] == [
        ("sasl", "reports", 1),
        ("digest", "a:b=", 1),
        ("world", "anyone", 1),
    ]


def test_a_library_that_is_missing_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(Invalid, match=r"pip install 'hybrid-ha\[kerberos\]'"):
        Security(auth="kerberos").check()
    Security(auth="digest", credentials="/x").check()


def test_a_password_may_hold_colons_and_the_file_may_end_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("alice:won:der\n")
    assert read_credentials(str(path)) == ("alice", "won:der")


@pytest.mark.parametrize("content", [b"", b"alice", b"alice:", b":wonder", b"alice:wonder\nbob:x", b"\xff:x"])
def test_a_file_of_another_form_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    with pytest.raises(CredentialsError) as caught:
        read_credentials(str(path))
    assert "wonder" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("shown", "messages"), [(logging.DEBUG, ["Sending a login to a:1"]), (logging.INFO, [])])
def test_kazoos_log_shows_no_password(caplog: pytest.LogCaptureFixture, shown: int, messages: list[str]) -> None:
    caplog.set_level(shown)
    QuietLog(logging.getLogger(__name__), {}).warning("Sending %s to %s", Auth(0, "digest", "alice:wonder"), "a:1")
    assert caplog.messages == messages
