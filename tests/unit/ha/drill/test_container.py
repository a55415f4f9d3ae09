"""What drills ask the engine and Compose to make and to delete: never what others have made; and when members ended."""

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.drill import container, container_environment
from ha.drill.container import Contained, Stack
from ha.drill.container_environment import ContainerEnvironment
from ha.drill.environment import DrillError
from ha.drill.runner import MARK, _not_ours, alone

ROOT = Path(__file__).parents[4]
USERS = ("hybrid-ha-zookeeper-1", "hybrid-ha-sidecar-1", "hybrid-ha-namenode-2", "my-hybrid-ha-drill-notes")
"""Names of containers that drills must leave alone."""


def test_a_killed_member_ended_when_the_engine_says_and_not_when_it_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two were 4.7 s on a busy machine, in which the next driver had begun: that was no overlap."""
    attrs = {"State": {"FinishedAt": "2026-11-26T18:26:40.250000999Z"}}
    killed: Any = SimpleNamespace(status="exited", attrs=attrs, reload=lambda: None)
    monkeypatch.setattr(container, "wall", lambda: 1795717605.0)  # 18:26:45
    monkeypatch.setattr(container, "now", lambda: 1000.0)
    assert Contained("a", killed, killed).ended_at() == pytest.approx(995.25)
    killed.status = "running"
    assert Contained("a", killed, killed).ended_at() == 1000.0


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called docker that writes down how it is called; returns that file."""
    file, program = tmp_path / "asked", tmp_path / "docker"
    program.write_text(f'#!/bin/sh\necho "$HA_STACK|$HA_NET|$HA_PUBLISHED-|$*" >>{file}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "hybrid-ha")  # as in docker/.env, which Compose reads
    monkeypatch.setenv("HA_PUBLISHED", "9999")
    monkeypatch.setenv("HA_NET", "172.29.84")  # as drills in containers leave it in the process that ran them
    return file


def networks(**subnets: str) -> Any:
    """Return the engine's networks, by name, as a stack asks for them."""
    given = {name: [{"Subnet": each} for each in subnet.split()] for name, subnet in subnets.items()}
    return lambda: [SimpleNamespace(name=name, attrs={"IPAM": {"Config": each}}) for name, each in given.items()]


def test_compose_is_asked_about_the_stack_of_a_folder_alone(asked: Path, tmp_path: Path) -> None:
    stacks = [Stack(tmp_path / name, networks()) for name in ("one", "other")]
    for stack in stacks:
        stack.up(["zookeeper-1"])
        stack.down()
    lines = [each.split("|") for each in asked.read_text().splitlines() if " -f " in each]
    assert [line[0] for line in lines] == [stack.name for stack in stacks for _ in ("up", "down")]
    for name, net, published, words in lines:
        assert re.fullmatch("hybrid-ha-drill-[0-9a-f]{6}", name)
        assert (published, net) == ("-", "172.29.84")
        assert words.startswith(f"compose --project-name {name} -f ")


def test_a_stack_has_a_name_of_its_own_that_it_finds_again(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "one")
    one, other, again = (Stack(tmp_path / name, networks()).name for name in ("one", "two", "link"))
    assert one != other
    assert one == again


def test_a_stack_takes_a_network_that_nobody_has(tmp_path: Path) -> None:
    taken = {"bridge": "172.17.0.0/16 fd00::/64", "a-drill": "172.29.84.0/24", "wide": "172.29.86.0/23", "none": ""}
    assert list(Stack(tmp_path, networks(**taken)).nets())[:2] == ["172.29.85", "172.29.88"]
    there = Stack(tmp_path, networks()).name
    assert list(Stack(tmp_path, networks(**taken, **{there: "172.29.90.0/24"})).nets()) == ["172.29.90"]
    assert not list(Stack(tmp_path, networks(all="172.16.0.0/12")).nets())


def test_a_network_that_another_drill_takes_meanwhile_is_left_to_it(tmp_path: Path, asked: Path) -> None:
    ups = 'case "$*" in *" up "*) echo "$HA_NET"'
    (tmp_path / "docker").write_text(f'#!/bin/sh\n{ups} >>{asked}; [ "$HA_NET" != 172.29.84 ];; esac\n')
    with pytest.raises(DrillError, match="Compose failed to up"):
        Stack(tmp_path, networks()).up([])
    seen = iter([networks()(), networks(other="172.29.84.0/24")()])
    Stack(tmp_path, lambda: next(seen)).up([])
    assert asked.read_text().split() == ["172.29.84", "172.29.84", "172.29.85"]


def test_two_commands_are_not_in_one_folder(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(DrillError, match="Another command is busy in"), alone(tmp_path):
        pass
    with alone(tmp_path), alone(tmp_path / "other"):
        pass


def test_each_name_and_port_of_the_stack_can_be_another() -> None:
    """Else the stack of a drill would be refused beside that of `make up`, or take its place."""
    text = (ROOT / "docker" / "compose.yaml").read_text()
    names = re.findall(r" (?:container_)?name: (.+)", text)
    assert len(names) == 14
    assert all(each.startswith("${HA_STACK:-hybrid-ha}") for each in names)
    ports = re.findall(r'ports: \["127\.0\.0\.1:(.+)"\]', text)
    assert len(ports) == 7
    assert all(each.startswith("${HA_PUBLISHED-") for each in ports)
    assert not re.search(r"^    (?:name|external):", text.partition("\nvolumes:")[2], re.MULTILINE)


class Engine:
    """The engine's list of containers, with names filtered as the engine does it: by a search, with or without /."""

    def __init__(self, *names: str) -> None:
        self.left = list(names)
        self.containers = self

    def list(self, *, filters: dict[str, str], **_: Any) -> list[Any]:
        pattern = re.compile(filters["name"])
        found = [each for each in self.left if pattern.search(each) or pattern.search(f"/{each}")]
        return [SimpleNamespace(name=each, remove=lambda each=each, **_: self.left.remove(each)) for each in found]


def test_a_sweep_removes_members_of_its_own_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Stack(tmp_path / "one", networks()).name, Stack(tmp_path / "other", networks()).name
    others = [*USERS, "hybrid-ha-drill-member-a", f"{other}-member-a", f"{other}-network-a", f"{other}-namenode-1"]
    engine: Any = Engine(*others, f"{one}-member-a", f"{one}-network-a", f"{one}-namenode-1")
    engine.networks, engine.images = engine, SimpleNamespace(get=lambda _: SimpleNamespace(attrs={}))
    monkeypatch.setattr(container_environment, "_check_engine", lambda: None)
    monkeypatch.setattr("docker.from_env", lambda **_: engine)
    monkeypatch.setattr(ContainerEnvironment, "_filters_packets", lambda _: True)
    environment = ContainerEnvironment(tmp_path / "one")
    environment._sweep()
    assert engine.left == [*others, f"{one}-namenode-1"]
    assert environment.hosts() == ["namenode-1"]


def test_a_folder_of_somebody_else_is_not_deleted(tmp_path: Path) -> None:
    assert not _not_ours(tmp_path / "new")
    assert "is no drill's" in _not_ours(tmp_path)
    (tmp_path / MARK).touch()
    assert not _not_ours(tmp_path)
