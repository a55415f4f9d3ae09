"""Settings of Kafka's clients: brokers, a mapping or a file; what is wrong is told, and no secret with it."""

from pathlib import Path

import pytest

from ha.kafka.clients import client_settings
from leader.errors import InvalidSettings

SECURED = """
# of the job orders
bootstrap.servers = kafka1:9093,kafka2:9093
security.protocol=SASL_SSL
sasl.password = a=b#c
"""


def test_brokers_a_mapping_and_a_file_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(SECURED)
    expected = {
        "bootstrap.servers": "kafka1:9093,kafka2:9093",
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b#c",
    }
    assert client_settings(file) == client_settings(str(file)) == client_settings(expected) == expected
    assert client_settings("kafka1:9092") == {"bootstrap.servers": "kafka1:9092"}


def test_what_is_wrong_is_told_without_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    with pytest.raises(InvalidSettings, match=r"cannot be read on this host: .*client\.properties"):
        client_settings(file)
    file.write_text("sasl.username=me\nhidden\n")
    with pytest.raises(InvalidSettings, match=r"Line 2 of .* is not NAME=VALUE") as told:
        client_settings(file)
    assert "hidden" not in str(told.value)
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidSettings, match="cannot be read"):
        client_settings(file)
    with pytest.raises(InvalidSettings, match=r"brokers are not named: give bootstrap\.servers"):
        client_settings({"sasl.username": "me"})
    with pytest.raises(InvalidSettings, match="brokers are not named"):
        client_settings("")
