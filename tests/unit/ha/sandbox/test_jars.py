"""Tests of the servers' jars, and of the messages when they are missing."""

import importlib.util
import zipfile
from pathlib import Path

import pytest

from ha.sandbox import SandboxError, jars
from ha.sandbox.cache import sha256
from ha.sandbox.faster_starts import repack


class FakeJava:
    """Stand-in for Java running Ivy: a script whose last argument is the target folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "java"
        self.says("exit 1")

    def says(self, script: str) -> None:
        self.path.write_text(f'#!/bin/sh\nfor last; do :; done\nfolder=$(dirname "$last")\n{script}\n')
        self.path.chmod(0o755)

    def brings(self, content: str) -> None:
        self.says(f'printf %s {content!r} > "$folder/{jars.MINICLUSTER}"')


@pytest.fixture
def java(tmp_path: Path) -> FakeJava:
    return FakeJava(tmp_path)


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "ivy-2.5.3.jar").touch()
    return folder


def fetch(java: FakeJava, spark: Path) -> Path:
    return jars.minicluster(java.path, spark, lambda _: None)


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SandboxError, match=r"pip install 'hybrid-ha\[spark\]'"):
        jars.spark_jars()


def test_an_incomplete_pyspark_is_named(spark: Path, java: FakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "spark_jars", lambda: spark)
    with pytest.raises(SandboxError, match=r"lack hadoop-client-api, .*zookeeper-jute: install pyspark 4\.3 again"):
        jars.classpath(java.path, lambda _: None)


def test_without_ivy_pyspark_is_incomplete(spark: Path, java: FakeJava) -> None:
    (spark / "ivy-2.5.3.jar").unlink()
    with pytest.raises(SandboxError, match="lack Ivy"):
        fetch(java, spark)


def test_without_network_ivys_reason_is_told(spark: Path, java: FakeJava) -> None:
    java.says("echo ':: resolving'; echo 'Host example.org not found. url=x'; exit 1")
    with pytest.raises(SandboxError, match=r"is there a network\? Ivy says: Host example.org not found"):
        fetch(java, spark)


def test_a_silent_failure_is_told(spark: Path, java: FakeJava) -> None:
    java.says("exit 3")
    with pytest.raises(SandboxError, match="exit code 3"):
        fetch(java, spark)


def test_a_wrong_checksum_is_refused_and_not_kept(tmp_path: Path, spark: Path, java: FakeJava) -> None:
    java.brings("something else")
    with pytest.raises(SandboxError, match="wrong SHA-256 checksum"):
        fetch(java, spark)
    assert not (tmp_path / "cache" / "hybrid-ha" / jars.MINICLUSTER).exists()


def test_a_damaged_jar_is_fetched_again(
    tmp_path: Path, spark: Path, java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "good").write_text("good")
    monkeypatch.setattr(jars, "MINICLUSTER_SHA256", sha256(tmp_path / "good"))
    java.brings("good")
    path = fetch(java, spark)
    path.write_text("bad!")
    assert fetch(java, spark).read_text() == "good"
    java.says("exit 1")
    assert fetch(java, spark).read_text() == "good"  # and now it is not fetched


def test_repacking_keeps_every_class_once_and_all_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    web = "org/apache/hadoop/hdfs/web/resources/A.class"
    contents = {
        "servers.jar": {"a/A.class": "1", web: "2", "META-INF/services/x.Y": "one"},
        "client.jar": {"a/A.class": "shadowed", "b/B.class": "3", "META-INF/services/x.Y": "two"},
    }
    for name, entries in contents.items():
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as jar:
            for entry, text in entries.items():
                jar.writestr(entry, text)
    made = repack(tmp_path / "client.jar", lambda: tmp_path / "servers.jar", lambda _: None)
    read = []
    for path in made:
        with zipfile.ZipFile(path) as jar:
            read.append({name: jar.read(name).decode() for name in jar.namelist()})
    assert read == [
        {web: "2"},
        {"a/A.class": "1", "b/B.class": "3", "META-INF/services/x.Y": "one\ntwo\n"},
    ]
