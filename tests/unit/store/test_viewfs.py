"""The mount tables of ViewFs that name a root, and those that are refused."""

from pathlib import Path

import pytest

from store.errors import Invalid
from store.hadoop_errors import configuration
from store.open import open_files
from store.viewfs import mounted

TABLE = "fs.viewfs.mounttable.cluster."
LINKS = {
    f"{TABLE}link./ha": "hdfs://ns1/jobs/ha",
    f"{TABLE}link./apps": "hdfs://ns2/apps/",
    f"{TABLE}link./apps/deep/one": "hdfs://ns3/one",
    f"{TABLE}homedir": "/user",
    "fs.viewfs.mounttable.cluster2.link./ha": "hdfs://ns9/ha",
}


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("viewfs://cluster/ha", "hdfs://ns1/jobs/ha"),
        ("viewfs://cluster/ha/", "hdfs://ns1/jobs/ha"),
        ("viewfs://cluster/ha/prod", "hdfs://ns1/jobs/ha/prod"),
        ("viewfs://cluster/apps/ha", "hdfs://ns2/apps/ha"),
        ("viewfs://cluster/apps/deep/one/ha", "hdfs://ns3/one/ha"),
        ("viewfs://cluster/apps/deep/one", "hdfs://ns3/one"),
        ("viewfs://cluster/apps/deep/onemore", "hdfs://ns2/apps/deep/onemore"),
    ],
)
def test_the_deepest_mount_point_above_a_root_counts(uri: str, root: str) -> None:
    assert mounted(uri, LINKS) == root


@pytest.mark.parametrize("target", ["hdfs://ns1", "hdfs://ns1/"])
def test_a_whole_file_system_can_be_mounted(target: str) -> None:
    for key in (f"{TABLE}link./all", f"{TABLE}linkFallback", f"{TABLE}linkMergeSlash"):
        assert mounted("viewfs://cluster/all/ha", {key: target}) == (
            "hdfs://ns1/ha" if key.endswith("/all") else "hdfs://ns1/all/ha"
        )
    assert mounted("viewfs://cluster/all", {f"{TABLE}link./all": target}) == "hdfs://ns1/"


def test_the_fallback_counts_where_no_link_does() -> None:
    table = LINKS | {f"{TABLE}linkFallback": "hdfs://ns4/rest"}
    assert mounted("viewfs://cluster/ha", table) == "hdfs://ns1/jobs/ha"
    assert mounted("viewfs://cluster/hats", table) == "hdfs://ns4/rest/hats"


@pytest.mark.parametrize(
    ("default", "root"),
    [
        ("viewfs://cluster", "hdfs://ns1/jobs/ha"),
        ("viewfs://cluster/", "hdfs://ns1/jobs/ha"),
        ("hdfs://ns5", "hdfs://d/ha"),
    ],
)
def test_without_a_table_s_name_the_default_file_system_s_counts(default: str, root: str) -> None:
    table = LINKS | {"fs.viewfs.mounttable.default.link./ha": "hdfs://d/ha", "fs.defaultFS": default}
    assert mounted("viewfs:///ha", table) == root


@pytest.mark.parametrize(
    ("uri", "more", "why"),
    [
        ("viewfs://cluster/apps", {}, "/apps/deep/one is another mount point below it"),
        ("viewfs://cluster/apps/deep", {}, "/apps/deep/one is another mount point below it"),
        ("viewfs://cluster/", {}, "another mount point below it"),
        ("viewfs://cluster", {}, "another mount point below it"),
        ("viewfs://cluster/hats", {}, "no mount point of 'cluster' is at it or above it"),
        ("viewfs://other/ha", {}, "has no mount table 'other'"),
        ("viewfs://cluster/ha", {f"{TABLE}linkRegex.^/x": "hdfs://ns1/x"}, "linkRegex"),
        ("viewfs://cluster/ha", {f"{TABLE}linkNfly../ha": "hdfs://a/b,hdfs://c/d"}, "linkNfly"),
        ("viewfs://cluster/ha", {f"{TABLE}linkMerge./ha": "hdfs://a/b,hdfs://c/d"}, "linkMerge"),
        ("viewfs://cluster/ha", {f"{TABLE}link./ha": "viewfs://other/ha"}, "another ViewFs"),
    ],
)
def test_a_root_that_is_at_no_one_file_system_is_refused(uri: str, more: dict[str, str], why: str) -> None:
    with pytest.raises(Invalid) as caught:
        mounted(uri, LINKS | more)
    assert why in str(caught.value)
    assert repr(uri) in str(caught.value)
    assert str(caught.value).endswith(".")


def write(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f'<configuration xmlns:xi="http://www.w3.org/2001/XInclude">{body}</configuration>')


def properties(settings: dict[str, str]) -> str:
    return "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return tmp_path


def test_files_are_opened_where_they_are_mounted(hadoop: Path) -> None:
    write(hadoop, "core-site.xml", properties(LINKS))
    with open_files("viewfs://cluster/ha/prod") as files:
        assert files.uri == "hdfs://ns1/jobs/ha/prod"
    with pytest.raises(Invalid, match="another mount point below it"):
        open_files("viewfs://cluster/apps")


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("viewfs://cluster/ha?x", "where a URI"),
        ("viewfs://me@cluster/ha", "names a user"),
        ("viewfs://cluster/ha/../apps", "cannot be a root"),
        ("viewfs://cluster//ha", "cannot be a root"),
        ("viewfs://cluster/ftp", "is mounted from 'ftp://host/x'"),
        ("viewfs://cluster/bad", "is mounted from 'hdfs://host:/x'"),
    ],
)
def test_what_is_no_root_of_hdfs_is_none_by_viewfs(hadoop: Path, uri: str, why: str) -> None:
    bad = {f"{TABLE}link./ftp": "ftp://host/x", f"{TABLE}link./bad": "hdfs://host:/x"}
    write(hadoop, "core-site.xml", properties(LINKS | bad))
    with pytest.raises(Invalid, match=why):
        open_files(uri)


def test_a_mount_table_may_be_a_file_of_its_own(hadoop: Path) -> None:
    write(hadoop, "core-site.xml", '<xi:include href="mountTable.xml"/><xi:include href="missing.xml"/>')
    write(hadoop, "mountTable.xml", properties(LINKS) + '<xi:include href="mountTable.xml"/>')
    assert configuration()[f"{TABLE}link./ha"] == "hdfs://ns1/jobs/ha"
