"""Variables in Hadoop's configuration: replaced as Hadoop's own clients do."""

from pathlib import Path

import pytest

from store.hadoop_errors import configuration, in_turn, namenodes


def given(place: Path, **properties: str) -> None:
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()
    )
    (place / "core-site.xml").write_text(f"<configuration>{rows}</configuration>")


@pytest.mark.parametrize(
    ("value", "means"),
    [
        ("hdfs://${nn.host}", "hdfs://h:8020"),
        ("hdfs://${nn.name}:${nn.port}", "hdfs://h:8020"),
        ("${env.SET}", "here"),
        ("${env.UNSET-there}", "there"),
        ("${env.EMPTY-there}", ""),
        ("${env.EMPTY:-there}", "there"),
        ("/var/${user.name}", "/var/${user.name}"),
        ("${again}", "${again}"),
    ],
)
def test_variables_are_replaced(value: str, means: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("SET", "here"), ("EMPTY", ""), ("HADOOP_CONF_DIR", str(tmp_path))):
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("UNSET", raising=False)
    known = {"nn.name": "h", "nn.port": "8020", "nn.host": "${nn.name}:${nn.port}", "again": "${again}"}
    given(tmp_path, asked=value, **known)
    assert configuration()["asked"] == means


def test_addresses_of_a_nameservice_may_be_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    known = {"host": "nn1", "dfs.ha.namenodes.ns1": "a", "dfs.namenode.rpc-address.ns1.a": "${host}:8020"}
    given(tmp_path, **known)
    assert namenodes(in_turn(configuration(), "ns1", 0), "ns1", "rpc-address") == ["nn1:8020"]
