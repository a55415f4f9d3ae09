"""The modes of NameNodes, as their web servers say them, and settings of Spark that were measured to be bad."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.doctor import servers
from ha.doctor.finding import Finding, Level
from ha.doctor.host import BOUNDED, MOST, PROVIDER, ROCKSDB, check_spark_settings, pages, warnings
from ha.doctor.servers import check_namenodes
from ha.placement.load import STATUS
from ha.spark.stored import stored_state
from tests.unit.ha.web_servers import web_servers

Serve = Callable[[bytes, int], str]


def mode(text: str) -> bytes:
    return json.dumps({"beans": [{"State": text}]}).encode()


@pytest.fixture
def serve() -> Iterator[Serve]:
    with web_servers() as start:
        yield lambda said, status: start(lambda path: (status if path == f"/jmx?qry={STATUS}" else 404, said))


def examined(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> Finding:
    known = {f"dfs.namenode.http-address.ns.{number}": address for number, address in enumerate(addresses)}
    known["dfs.ha.namenodes.ns"] = ",".join(map(str, range(len(addresses))))
    monkeypatch.setattr(servers, "hadoop", lambda: known)
    (found,) = check_namenodes("hdfs://ns/jobs")
    return found


@pytest.mark.parametrize(
    ("modes", "level"),
    [
        (("active", "standby"), Level.OK),
        (("standby", "active"), Level.OK),
        (("standby", "standby"), Level.FAILED),
        (("active", "active"), Level.FAILED),
    ],
)
def test_one_is_active(serve: Serve, monkeypatch: pytest.MonkeyPatch, modes: tuple[str, str], level: Level) -> None:
    addresses = [serve(mode(each), 200) for each in modes]
    found = examined(monkeypatch, *addresses)
    assert found.level is level
    assert found.found == f"{addresses[0]} {modes[0]}, {addresses[1]} {modes[1]}."


@pytest.mark.parametrize(
    ("said", "status", "shown"),
    [
        (mode("active"), 401, "HTTP 401"),
        (b"<html>", 200, "JSONDecodeError"),
        (b"[]", 200, "TypeError"),
        (b'{"beans": []}', 200, "LookupError"),
        (b'{"beans": [{}]}', 200, "KeyError"),
    ],
)
def test_unreadable_is_a_warning(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, said: bytes, status: int, shown: str
) -> None:
    found = examined(monkeypatch, serve(mode("active"), 200), serve(said, status))
    assert found.level is Level.WARNING
    assert f"unknown ({shown})" in found.found


def test_a_namenode_that_is_gone_is_a_warning(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, serve(mode("active"), 200), "127.0.0.1:1")
    assert found.level is Level.WARNING
    assert found.found.endswith("127.0.0.1:1 unknown (ConnectionError).")


@pytest.mark.parametrize("files", ["file:///jobs", "hdfs://host:8020/jobs", "hdfs:///jobs"])
def test_only_a_nameservice_has_modes(files: str) -> None:
    assert not list(check_namenodes(files))


def test_addresses_that_are_missing_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "hadoop", lambda: {"dfs.http.policy": "HTTPS_ONLY"})
    (found,) = check_namenodes("hdfs://ns/jobs")
    assert found.level is Level.WARNING
    assert found.remedy.startswith("Add dfs.namenode.https-address ")


def remedies(**given: str) -> list[str]:
    names = {"provider": PROVIDER, "bounded": BOUNDED}
    return [each.remedy for each in warnings({names[name]: value for name, value in given.items()})]


def test_rocksdb_without_a_bound_is_warned_of() -> None:
    (remedy,) = remedies(provider=ROCKSDB)
    assert MOST in remedy
    assert remedies(provider=ROCKSDB, bounded="false")


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_rocksdb_with_a_bound_is_not(value: str) -> None:
    assert not remedies(provider=ROCKSDB, bounded=value)


def test_another_store_is_not() -> None:
    assert not remedies(provider=ROCKSDB.replace("RocksDB", "HDFSBacked"))
    assert not remedies()


def test_names_are_those_that_a_job_sets() -> None:
    assert (PROVIDER, ROCKSDB) == (stored_state.PROVIDER, stored_state.ROCKSDB)


def test_the_file_that_spark_reads_is_examined(tmp_path: Path) -> None:
    file, environment = tmp_path / "spark-defaults.conf", {"SPARK_CONF_DIR": str(tmp_path)}
    file.write_text(f"{PROVIDER}  {ROCKSDB}\n")
    assert [each.level for each in check_spark_settings(environment)] == [Level.WARNING, Level.WARNING]
    file.write_text(f"{PROVIDER}={ROCKSDB}\n{BOUNDED}=true\n")
    found, _ = check_spark_settings(environment)
    assert found.level is Level.OK
    assert found.found == f"None is bad in {file}."


def test_without_such_a_file_nothing_is_wrong() -> None:
    found, _ = check_spark_settings({"PATH": ""})
    assert found.level is Level.OK


@pytest.mark.parametrize(
    ("given", "environment", "level"),
    [
        ({}, {}, Level.WARNING),
        ({"spark.ui.enabled": "true"}, {"SPARK_LOCAL_IP": "10.0.0.7"}, Level.WARNING),
        ({"spark.ui.enabled": "False"}, {}, Level.OK),
        ({"spark.ui.filters": "a.Filter"}, {}, Level.OK),
        ({}, {"SPARK_LOCAL_IP": "127.0.0.1"}, Level.OK),
    ],
)
def test_pages_open_to_all_are_warned_of(given: dict[str, str], environment: dict[str, str], level: Level) -> None:
    """tests/system/spark/test_strangers.py sees where Spark listens."""
    assert pages(given, environment).level is level
