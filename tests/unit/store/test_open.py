"""The URIs that are accepted, and the modules that are loaded for them."""

import subprocess
import sys
from pathlib import Path

import pytest

from store.errors import Invalid
from store.open import open_files
from tests.patience import PATIENCE_S

REFUSED = [
    ("", "no known scheme"),
    ("/var/ha", "no known scheme"),
    ("var/ha", "no known scheme"),
    ("s3://bucket/ha", "no known scheme"),
    ("HDFS", "no known scheme"),
    ("hdfs:///ha", "names no host"),
    ("hdfs:/ha", "names no host"),
    ("webhdfs:///ha", "names no host"),
    ("hdfs://:8020/ha", "names no host"),
    ("hdfs://host:/ha", "names no port"),
    ("hdfs://host:0/ha", "names no port"),
    ("hdfs://host:99999/ha", "not a URI"),
    ("hdfs://host:port/ha", "not a URI"),
    ("hdfs://[::1/ha", "not a URI"),
    ("hdfs://host:8020", "no absolute path"),
    ("webhdfs://host:9870", "no absolute path"),
    ("hdfs://me@host:8020/ha", "names a user"),
    ("hdfs://host:8020/ha?op=LIST", "where a URI"),
    ("hdfs://host:8020/ha?", "where a URI"),
    ("file:///var/ha#x", "where a URI"),
    ("file://var/ha", "names a host"),
    ("file:ha", "no absolute path"),
    ("file://", "no absolute path"),
    ("file:///", "whole file system"),
    ("file:///var/../etc", "cannot be a root"),
    ("hdfs://host:8020/a//b", "cannot be a root"),
    ("hdfs://host:8020/a:b", "cannot be a root"),
    ("hdfs://host:8020//ha", "cannot be a root"),
    ("hdfs://host:8020/" + "n" * 256, "cannot be a root"),
]


@pytest.mark.parametrize(("uri", "why"), REFUSED)
def test_a_wrong_uri_is_refused_with_one_sentence(uri: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)  # its fs.defaultFS would give hdfs:///ha a host
    with pytest.raises(Invalid, match=why) as caught:
        open_files(uri)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert repr(uri) in message


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("hdfs://host:8020/ha", "hdfs://host:8020/ha"),
        ("hdfs://host:8020/ha/", "hdfs://host:8020/ha"),
        ("hdfs://nameservice/ha/prod", "hdfs://nameservice/ha/prod"),
        ("hdfs://host:8020/", "hdfs://host:8020/"),
        ("webhdfs://host:9870/ha", "webhdfs://host:9870/ha"),
        ("hdfs://[::1]:8020/ha", "hdfs://[::1]:8020/ha"),
        ("file:///var/lib/ha", "file:///var/lib/ha"),
        ("file:/var/lib/ha", "file:///var/lib/ha"),
        ("file://localhost/var/lib/ha", "file:///var/lib/ha"),
    ],
)
def test_a_right_uri_connects_to_nothing_yet(uri: str, root: str) -> None:
    with open_files(uri) as files:
        assert files.uri == root


def test_files_open_and_work(tmp_path: Path) -> None:
    with open_files(f"{tmp_path.as_uri()}/root") as files:
        files.call("make_root", lambda driver: driver.make_root(), PATIENCE_S)
        files.call("make_directory", lambda driver: driver.make_directory("job"), PATIENCE_S)
        assert files.call("uri", lambda driver: driver.uri, PATIENCE_S) == files.uri
    assert (tmp_path / "root" / "job").is_dir()


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_a_nameservice_that_nobody_knows(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with open_files(f"{scheme}://nowhere/ha") as files, pytest.raises(Invalid, match="is no nameservice"):
        files.call("list", lambda driver: driver.list(""), PATIENCE_S)


def test_a_broken_configuration_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with open_files("webhdfs://ns/ha") as files, pytest.raises(Invalid, match=r"hdfs-site\.xml cannot be read"):
        files.call("list", lambda driver: driver.list(""), PATIENCE_S)


def test_only_the_driver_in_use_is_imported(tmp_path: Path) -> None:
    program = f"""
import sys
from store.open import open_files
heavy = ("hdfs", "hdfs_native", "requests", "store.local", "ctypes", "xml.etree.ElementTree")
open_files("hdfs://host:8020/ha")
print([name for name in heavy if name in sys.modules])
open_files("{tmp_path.as_uri()}").call("list", lambda driver: driver.list(""), 10)
print([name for name in heavy if name in sys.modules])
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert finished.stdout.splitlines() == ["[]", "['store.local', 'ctypes']"]


def hadoop(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    named = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (folder / "core-site.xml").write_text(f"<configuration>{named}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))


@pytest.mark.parametrize(
    ("default", "root"),
    [
        ("hdfs://nn-1:9000", "hdfs://nn-1:9000/ha"),
        ("hdfs://nn-1:9000/", "hdfs://nn-1:9000/ha"),
        ("hdfs://nn-1", "hdfs://nn-1:8020/ha"),
        ("hdfs://ns1", "hdfs://ns1/ha"),
    ],
)
def test_a_root_on_hadoops_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: str, root: str) -> None:
    hadoop(tmp_path, monkeypatch, fs__defaultFS=default, dfs__ha__namenodes__ns1="a,b")
    with open_files("hdfs:///ha") as files:
        assert files.uri == root


@pytest.mark.parametrize("default", ["file:///", "s3a://bucket", "", "hdfs://", "hdfs://a/b", "hdfs://a:x"])
def test_a_default_file_system_without_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: str) -> None:
    hadoop(tmp_path, monkeypatch, fs__defaultFS=default)
    with pytest.raises(Invalid, match=r"names no host, and fs\.defaultFS of the Hadoop configuration is"):
        open_files("hdfs:///ha")


def test_a_default_file_system_that_is_a_viewfs_is_written_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop(tmp_path, monkeypatch, fs__defaultFS="viewfs://main")
    with pytest.raises(Invalid, match=r"fs\.defaultFS is viewfs://main: write viewfs:///ha\."):
        open_files("hdfs:///ha")
