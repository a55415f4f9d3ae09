"""What a process says first: its stores, whether they protect this host alone, and secrets that others can reach."""

import logging
from pathlib import Path
from typing import Any

import pytest

from ha.config.log import KEYS, SECRETS, announce, exposures
from ha.config.settings import Settings
from ha.config.sources import gather
from ha.doctor.examination import _check_settings
from ha.doctor.finding import Level


def test_the_stores_and_where_they_come_from(caplog: pytest.LogCaptureFixture) -> None:
    Path("ha.toml").write_text("zookeeper = 'zk1:2181/ha'")
    with caplog.at_level(logging.INFO, "ha"):
        announce(gather({}, {"HA_FILES": "hdfs://nameservice1/ha"}))
    assert caplog.messages == ["The jobs are in hdfs://nameservice1/ha (HA_FILES), ZooKeeper is zk1:2181/ha (ha.toml)."]


def test_a_store_of_this_host_is_said_to_be_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ha"):
        announce(gather({}, {"XDG_STATE_HOME": "/state"}))
    first, second = caplog.records
    assert first.getMessage() == (
        "The jobs are in file:///state/hybrid-ha/jobs (default), there is no ZooKeeper (default)."
    )
    assert second.levelno == logging.WARNING
    assert second.getMessage().startswith("file:///state/hybrid-ha/jobs guards this host alone: ")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that is its owner's alone, in a directory that is."""
    tmp_path.chmod(0o700)
    path = tmp_path / "secret"
    path.touch(0o600)
    return path


@pytest.mark.parametrize("name", [*SECRETS, *KEYS, *KEYS.values()])
def test_every_file_with_a_secret_is_looked_at(name: str, secret: Path) -> None:
    named: dict[str, Any] = {name: str(secret)}
    settings = Settings.of(**named)
    assert list(exposures(settings)) == []
    secret.chmod(0o640)
    (found,) = exposures(settings)
    assert found.endswith(f"other users may use {secret} (mode 0640): chmod 600 {secret}")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_any_right_of_others_is_too_much(mode: int, secret: Path) -> None:
    secret.chmod(mode)
    assert len(list(exposures(Settings.of(kerberos_keytab=str(secret))))) == 1


def test_a_certificate_is_no_secret_if_its_key_is_elsewhere(secret: Path) -> None:
    certificate = secret.parent / "certificate"
    certificate.touch(0o644)
    assert list(exposures(Settings.of(http_certificate=str(certificate), http_key=str(secret)))) == []


@pytest.mark.parametrize(("mode", "found"), [(0o755, 0), (0o775, 1), (0o757, 1), (0o1777, 0)])
def test_a_directory_in_which_others_can_replace_it(mode: int, found: int, secret: Path) -> None:
    secret.parent.chmod(mode)
    said = list(exposures(Settings.of(jobmaster_token=str(secret))))
    assert len(said) == found
    assert all(f"replace {secret} (mode {mode:04o} of {secret.parent})" in each for each in said)


def test_a_file_that_is_not_there_is_left_to_its_reader(secret: Path) -> None:
    assert list(exposures(Settings.of(jobmaster_token=str(secret.with_name("none"))))) == []


def test_it_is_logged_at_the_start_and_shown_by_the_doctor(secret: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret.chmod(0o644)
    gathered = gather({}, {"HA_FILES": "hdfs://nameservice1/ha", "HA_JOBMASTER_TOKEN": str(secret)})
    announce(gathered)
    assert [each.levelname for each in caplog.records if str(secret) in each.getMessage()] == ["WARNING"]
    (found,) = [each for each in _check_settings(gathered) if each.check == "credentials"]
    assert (found.level, found.remedy) == (Level.WARNING, f"chmod 600 {secret}")
    secret.chmod(0o600)
    assert [each.level for each in _check_settings(gathered) if each.check == "credentials"] == []
