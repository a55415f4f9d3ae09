"""The stack of `make up`: what its script waits for, and what its file promises to those who stop it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from ha.config.settings import Settings
from tests.unit.test_deploy_examples import RELEASE_S

ROOT = Path(__file__).parents[2]
SIDECARS = ("sidecar-1", "sidecar-2")

DOCKER = """#!/bin/sh
case "$*" in
    "compose version") ;;
    compose*" ps "*) echo aaa ;;
    compose*) ;;
    "ps "*"id=aaa"*) echo "hybrid-ha-sidecar-1 Up 3 seconds (healthy)" ;;
    "ps "*) printf '%s\\n' "hybrid-ha-sidecar-1 Up 3 seconds (healthy)" "hybrid-ha-prometheus Exited (137)" ;;
esac
"""
"""Prometheus was started by MONITORING=1, and killed."""


def test_up_waits_for_what_it_starts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ended = subprocess.run([ROOT / "docker" / "up"], capture_output=True, text=True, timeout=20, check=False)
    assert "All 1 containers are healthy" in ended.stdout, ended.stderr


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"][name]
    return found


@pytest.mark.parametrize("name", SIDECARS)
def test_a_sidecar_has_the_time_to_give_its_lease_back(name: str) -> None:
    grace = service(name)["stop_grace_period"]
    assert int(grace.removesuffix("s")) >= Settings().command.stop_grace + 2 * RELEASE_S


@pytest.mark.parametrize("name", SIDECARS)
def test_a_sidecar_that_is_always_restarted_stays_when_its_job_has_ended(name: str) -> None:
    assert service(name)["restart"] == "unless-stopped"
    assert "--stay" in service(name)["command"].split(" -- ")[0].split()
