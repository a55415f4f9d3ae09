"""Tests of the servers' jars, and of the messages when they are missing."""

import importlib.util
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from ha.hosts.cache import digest_of
from ha.hosts.host_error import HostError
from ha.sandbox import SandboxError, jars
from ha.sandbox.faster_starts import repack
from ha.sandbox.jars import Bundle, fetched

JAR = "hadoop-client-minicluster-3.5.0.jar"


class FakeJava:
    """Stand-in for Java running Ivy: a script whose last argument is the target folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "java"
        self.says("exit 1")

    def says(self, script: str) -> None:
        self.path.write_text(f'#!/bin/sh\nfor last; do :; done\nfolder=$(dirname "$last")\n{script}\n')
        self.path.chmod(0o755)

    def brings(self, content: str) -> None:
        self.says(f'printf %s {content!r} > "$folder/{JAR}"')


@pytest.fixture
def java(tmp_path: Path) -> FakeJava:
    return FakeJava(tmp_path)


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "jars"
    folder.mkdir()
    monkeypatch.setattr(jars, "spark_jars", lambda: folder)
    (folder / "ivy-2.5.3.jar").touch()
    return folder


def fetch(java: FakeJava, bundle: Bundle = jars.MINICLUSTER) -> Path:
    return fetched(bundle, java.path, lambda _: None)[0]


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SandboxError, match=r"pip install 'hybrid-ha\[spark\]'"):
        jars.spark_jars()


@pytest.mark.usefixtures("spark")
def test_an_incomplete_pyspark_is_named(java: FakeJava) -> None:
    with pytest.raises(SandboxError, match=r"lack hadoop-client-api, .*zookeeper-jute: install pyspark 4\.3 again"):
        jars.classpath(java.path, lambda _: None)


def test_without_ivy_pyspark_is_incomplete(spark: Path, java: FakeJava) -> None:
    (spark / "ivy-2.5.3.jar").unlink()
    with pytest.raises(SandboxError, match="lack Ivy"):
        fetch(java)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "PAUSE_S", 0.0)


@pytest.mark.usefixtures("spark", "no_pause")
def test_a_registry_that_fails_twice_is_asked_a_third_time(java: FakeJava, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    java.says(f"echo >>{tries}; exit 1")
    with pytest.raises(SandboxError):
        fetch(java)
    assert len(tries.read_text().splitlines()) == 3


@pytest.mark.usefixtures("spark", "no_pause")
def test_without_network_ivys_reason_is_told(java: FakeJava) -> None:
    java.says("echo ':: resolving'; echo 'Host example.org not found. url=x'; exit 1")
    with pytest.raises(SandboxError, match=r"is there a network\? Ivy says: Host example.org not found"):
        fetch(java)


@pytest.mark.usefixtures("spark", "no_pause")
def test_a_silent_failure_is_told(java: FakeJava) -> None:
    java.says("exit 3")
    with pytest.raises(SandboxError, match="exit code 3"):
        fetch(java)


@pytest.mark.usefixtures("spark")
def test_a_wrong_checksum_is_refused_and_not_kept(tmp_path: Path, java: FakeJava) -> None:
    java.brings("something else")
    with pytest.raises(HostError, match="wrong SHA-256 checksum"):
        fetch(java)
    assert not (tmp_path / "cache" / "hybrid-ha" / jars.MINICLUSTER.name).exists()


@pytest.mark.usefixtures("spark")
def test_a_bad_jar_is_replaced(tmp_path: Path, java: FakeJava) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / JAR).write_text("good")
    bundle = replace(jars.MINICLUSTER, digest=digest_of(tmp_path / "whole"))
    java.brings("good")
    path = fetch(java, bundle)
    path.write_text("bad!")
    assert fetch(java, bundle).read_text() == "good"
    java.says("exit 1")
    assert fetch(java, bundle).read_text() == "good"  # and now it is not fetched


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
    assert read == [{web: "2"}, {"a/A.class": "1", "b/B.class": "3", "META-INF/services/x.Y": "one\ntwo\n"}]
