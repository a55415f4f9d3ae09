"""A secure sandbox: what it needs is said before anything is made."""

import shutil
from pathlib import Path

import pytest

from ha.sandbox import Sandbox, SandboxError, realm
from ha.sandbox.state import Directory, new_state


def test_without_a_centre_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert realm.missing() == (
        "There is no krb5kdc: install Kerberos (Debian: apt-get install krb5-kdc krb5-admin-server krb5-user)."
    )
    with pytest.raises(SandboxError, match="There is no krb5kdc: install Kerberos"):
        Sandbox(tmp_path).up(secure=True)
    assert Directory(tmp_path).load() is None


def test_a_sandbox_stays_as_it_was_made(tmp_path: Path) -> None:
    Directory(tmp_path).save(new_state("me", 1, 1))
    with pytest.raises(SandboxError, match="was made without --secure: take it down with --wipe first"):
        Sandbox(tmp_path).up(secure=True)
    Directory(tmp_path).save(new_state("me", 1, 1, str(tmp_path / "secured")))
    with pytest.raises(SandboxError, match="was made with --secure"):
        Sandbox(tmp_path).up(secure=False)


def test_a_secure_sandbox_has_one_namenode() -> None:
    with pytest.raises(SandboxError, match="has one NameNode: leave --secure or --namenodes out"):
        new_state("me", 1, 2, "/secured")
