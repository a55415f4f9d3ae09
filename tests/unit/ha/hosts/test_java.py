"""Tests of the messages when there is no suitable Java."""

from pathlib import Path

import pytest

from ha.hosts.host_error import HostError
from ha.hosts.java import find_java


def install(home: Path, script: str) -> None:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)


def test_none_on_the_search_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"no Java on the search path.*openjdk-17-jre-headless.*JAVA_HOME"):
        find_java()


def test_none_in_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HostError, match=f"no Java in JAVA_HOME \\({tmp_path}\\)"):
        find_java()


@pytest.mark.parametrize(("said", "version"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, version: int) -> None:
    install(tmp_path, f"echo 'openjdk version \"{said}\" 2024-01-16' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HostError, match=f"is Java {version}, too old"):
        find_java()


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, version: int) -> None:
    install(tmp_path, f"echo 'openjdk version \"{said}\" 2024-01-16' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java().version == version
    assert find_java().path == tmp_path / "bin" / "java"


@pytest.mark.parametrize("script", ["exit 1", "echo gibberish"])
def test_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    install(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HostError, match="does not tell its version"):
        find_java()
