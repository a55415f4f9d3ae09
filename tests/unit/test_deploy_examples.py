"""Examples of deployment: their times fit those of the sidecar, and what they name exists."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]

from ha.cli import app
from ha.config.settings import Settings, reference
from tests.patience import PATIENCE_S

FOLDER = Path(__file__).parents[2] / "examples" / "deploy"
UNITS = sorted((FOLDER / "systemd").iterdir())
RELEASE_S = 10.0
"""To give a lease back takes some calls of the store, and a JVM needs a while to end."""


def documents(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "kubernetes" / name).read_text()))
    return found


def one(kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents("orders.yaml") if each["kind"] == kind)
    return found


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return parser


SERVICES = [path for path in UNITS if path.suffix == ".service"]
DROP_IN = FOLDER / "systemd" / "ha-run-adopt.conf"


def test_a_pod_has_the_time_to_give_its_lease_back() -> None:
    grace = one("StatefulSet")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace >= Settings().command.stop_grace + 2 * RELEASE_S


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_has_the_time_to_give_its_lease_back(path: Path) -> None:
    service = unit(path)["Service"]
    assert int(service["TimeoutStopSec"]) >= Settings().command.stop_grace + RELEASE_S
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert service["KillMode"] == "mixed", "TERM is for the sidecar, which ends its command itself"


def test_a_sidecar_that_was_killed_comes_back_while_its_command_waits() -> None:
    service = unit(DROP_IN)["Service"]
    (name, within), (pause, kill) = service["Environment"].split("="), (service["RestartSec"], service["KillMode"])
    assert name in {each.variable for each in reference()}
    assert int(pause.removesuffix("ms")) / 1000 < float(within) / 2
    assert kill == "process", "systemd must not kill the guard"


def test_a_pod_stays_when_its_job_has_ended() -> None:
    """Kubernetes starts again whatever ends in a pod of a StatefulSet."""
    (driver,) = one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert "--stay" in driver["command"]


def test_a_pod_meets_the_restricted_standard() -> None:
    pod = one("StatefulSet")["spec"]["template"]["spec"]
    (driver,) = pod["containers"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert driver["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"name": "tmp", "mountPath": "/tmp"} in driver["volumeMounts"]  # noqa: S108  # of the pod


def test_two_pods_never_share_a_node_and_never_leave_together() -> None:
    pods = one("StatefulSet")["spec"]
    assert pods["replicas"] == 2
    labels = pods["selector"]["matchLabels"]
    assert pods["template"]["metadata"]["labels"] == labels
    (rule,) = pods["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == labels
    assert one("PodDisruptionBudget")["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    assert one("Service")["spec"]["selector"] == labels


def test_settings_and_commands_that_are_named_exist() -> None:
    known = {each.variable for each in reference()}
    pods = [one("StatefulSet")["spec"]["template"]["spec"], documents("executor.yaml")[0]["spec"]]
    containers = [each for pod in pods for key in ("containers", "initContainers") for each in pod.get(key, [])]
    names = {entry["name"] for each in containers for entry in each.get("env", [])} | one("ConfigMap")["data"].keys()
    assert {name for name in names if name.startswith("HA_")} <= known
    commands = [each["command"] for each in containers if "command" in each]
    commands += [re.sub("^/opt/hybrid-ha/bin/", "", unit(path)["Service"]["ExecStart"]).split() for path in SERVICES]
    assert len(commands) == 4
    for program, *words in commands:
        assert program == "ha"
        command: click.Command | None = app
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None
        options = {option for each in command.params for option in each.opts}
        given = words[: words.index("--")] if "--" in words else words
        assert {word for word in given if word.startswith("--")} <= options


def test_probes_ask_for_what_is_served() -> None:
    (driver,) = one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in driver["ports"]}
    assert one("ConfigMap")["data"]["HA_LISTEN"] == f"0.0.0.0:{ports['http']}"
    assert one("ConfigMap")["data"]["HA_SUSPICION_ADDRESS"] == f"0.0.0.0:{ports['suspicion']}"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert driver[probe]["httpGet"] == {"path": "/livez", "port": "http"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for path in UNITS:
        text = path.read_text().replace("/opt/hybrid-ha/bin/ha", "/bin/true")
        place = tmp_path / path.name.replace("@", "@orders")
        if path == DROP_IN:
            place = tmp_path / "ha-run@orders.service.d" / "adopt.conf"
            place.parent.mkdir()
        place.write_text(text)
    command = ["systemd-analyze", "verify", *(str(each) for each in sorted(tmp_path.iterdir()) if each.is_file())]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr
