"""A secure sandbox: what it needs is said before anything is made."""

import shutil
from pathlib import Path

import pytest

from ha.sandbox import Sandbox, SandboxError, hadoop_conf, hdfs, realm
from ha.sandbox.secured import USER, Secured
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


def test_two_namenodes_share_an_encrypted_journal_whose_servers_have_names(tmp_path: Path) -> None:
    state = new_state("me", 1, 2, str(tmp_path))
    journals = state.of("journalnode")
    named = ";".join(f"localhost:{each.ports['rpc']}" for each in journals)
    active, _standby = state.of("namenode")
    settings = hadoop_conf.program(active, state, tmp_path, tmp_path).arguments
    assert f"-Ddfs.namenode.shared.edits.dir=qjournal://{named}/sandbox" in settings
    for each in journals:
        settings = hadoop_conf.program(each, state, tmp_path, tmp_path).arguments
        assert f"-Ddfs.journalnode.https-address=127.0.0.1:{each.ports['https']}" in settings
    assert (hadoop_conf.filesystem(state), hadoop_conf.web_filesystem(state)) == (
        "hdfs://sandbox",
        "swebhdfs://sandbox",
    )


def test_tickets_last_as_long_as_was_said_in_a_secure_sandbox_alone(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="Only a secure sandbox has tickets: give --secure as well"):
        Sandbox(tmp_path).up(ticket_life=2)
    assert Directory(tmp_path).load() is None
    state = new_state("me", 1, 1, str(tmp_path / "secured"), ticket_life=2)
    Directory(tmp_path).save(state)
    assert Directory(tmp_path).load() == state
    found = Secured(state).realm
    found.folder.mkdir(parents=True)
    (found.folder / "made").touch()
    found.make({})
    assert "max_life = 2m" in (found.folder / "kdc.conf").read_text()
    with pytest.raises(SandboxError, match="has tickets of 2 minutes, not 3: take it down with --wipe first"):
        Sandbox(tmp_path).up(ticket_life=3)


def test_a_program_of_spark_finds_the_realm_and_logs_in(tmp_path: Path) -> None:
    state = new_state("me", 1, 1, str(tmp_path))
    given = Secured(state).environment_of(USER)
    assert given["SPARK_SUBMIT_OPTS"] == f"-Djava.security.krb5.conf={given['KRB5_CONFIG']}"
    assert given["PYSPARK_SUBMIT_ARGS"] == (
        f"--principal alice@HA.SANDBOX --keytab {given['HA_KERBEROS_KEYTAB']} pyspark-shell"
    )


def test_a_secured_namenode_is_not_asked_for_a_mode_that_nobody_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ha lab sandbox up --secure``, given again to start what has ended."""
    monkeypatch.setattr(hdfs, "active_namenode", lambda state: state.of("namenode")[0])
    monkeypatch.setattr(hdfs, "bean", lambda *_: {"Safemode": "Safe mode is ON. It was turned on manually."})
    assert not hdfs.was_put_in_safe_mode(new_state("me", 1, 1, str(tmp_path)))
    assert hdfs.was_put_in_safe_mode(new_state("me", 1, 1))
