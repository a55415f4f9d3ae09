"""Tests of the sandbox's state on disk."""

import fcntl
import threading
from pathlib import Path
from typing import Any

import pytest

from ha.sandbox import Sandbox, SandboxError
from ha.sandbox.state import Directory, default_directory, new_state
from tests.patience import PATIENCE_S


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    assert directory.load() is None
    state = new_state("somebody", zookeepers=3, namenodes=2)
    directory.save(state)
    assert directory.load() == state
    assert [server.name for server in state.of("journalnode")] == ["journalnode-1", "journalnode-2", "journalnode-3"]
    ports = [port for server in state.servers for port in server.ports.values()]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(("zookeepers", "namenodes"), [(0, 1), (2, 1), (1, 3)])
def test_other_numbers_are_refused_before_anything_is_written(tmp_path: Path, zookeepers: int, namenodes: int) -> None:
    with pytest.raises(SandboxError, match="1 or 3 ZooKeeper servers and 1 or 2 NameNodes"):
        Sandbox(tmp_path / "new").up(zookeepers or 4, namenodes)
    assert not (tmp_path / "new").exists()


def test_an_unknown_name_is_told_with_the_known_ones(tmp_path: Path) -> None:
    Directory(tmp_path).save(new_state("somebody", 1, 1))
    with pytest.raises(SandboxError, match="no server 'zookeeper-2'; it has zookeeper-1, namenode-1, datanode-1"):
        Sandbox(tmp_path).kill("zookeeper-2")


def test_damage_is_told(tmp_path: Path) -> None:
    (tmp_path / "sandbox.json").write_text("{")
    with pytest.raises(SandboxError, match=r"sandbox\.json cannot be read"):
        Sandbox(tmp_path).status()


def test_wiping_leaves_what_others_put_there(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "box")
    with directory.locked():
        directory.save(new_state("somebody", 1, 1))
        (directory.root / "mine").write_text("kept")
    Sandbox(directory.root).down(wipe=True)
    assert [path.name for path in directory.root.iterdir()] == ["mine"]


def test_wiping_removes_the_directory_if_it_is_empty(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "box")
    with directory.locked():
        directory.save(new_state("somebody", 1, 1))
    Sandbox(directory.root).down(wipe=True)
    assert not directory.root.exists()


def test_a_directory_without_a_sandbox_is_not_touched(tmp_path: Path) -> None:
    box = Sandbox(tmp_path / "nothing")
    assert box.status() == []
    assert not box.down(wipe=True)
    for use in (box.environment, box.wipe_zookeeper, lambda: box.kill("zookeeper-1"), box.names):
        with pytest.raises(SandboxError, match="There is no sandbox in"):
            use()
    assert not (tmp_path / "nothing").exists()


def test_a_directory_below_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxError, match=r"directory .*/file/box cannot be used"):
        Sandbox(tmp_path / "file" / "box").up()


@pytest.mark.parametrize("name", ["with a space", "a:b", "a%20b", "a,b", "café"])
def test_a_directory_that_hadoop_cannot_use_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SandboxError, match=f"Hadoop cannot keep its data in .*/{name}: choose a directory"):
        Sandbox(tmp_path / name).up()
    assert list(tmp_path.iterdir()) == []


def test_whoever_waited_while_it_was_wiped_locks_the_new_one(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "box")
    guarded: list[bool] = []

    def wait_for_it() -> None:
        with directory.locked(), (directory.root / "sandbox.lock").open("w") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                guarded.append(False)
            except BlockingIOError:
                guarded.append(True)

    waiting = threading.Thread(target=wait_for_it)
    with directory.locked():
        waiting.start()
        directory.wipe()
    waiting.join(PATIENCE_S)
    assert guarded == [True]
    assert directory.root.is_dir()


@pytest.mark.parametrize("lost", ["mkdir", "open"])
def test_a_wipe_before_the_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    directory = Directory(tmp_path / "box")
    wipes, done = [directory.wipe], getattr(Path, lost)

    def do_and_lose(path: Path, *args: Any, **kwargs: Any) -> Any:
        found = done(path, *args, **kwargs)
        if wipes:
            wipes.pop()()
        return found

    monkeypatch.setattr(Path, lost, do_and_lose)
    with directory.locked():
        assert not wipes
        assert directory.root.is_dir()
        assert (directory.root / "sandbox.lock").exists()


def test_the_user_chooses_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "hybrid-ha" / "sandbox"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_directory() == tmp_path / ".local" / "state" / "hybrid-ha" / "sandbox"


@pytest.mark.parametrize("folder", ["conf", "data", "logs", "tmp"])
def test_a_folder_of_somebody_else_is_not_taken_and_not_deleted(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "mine").touch()
    with pytest.raises(SandboxError, match=f"{folder} is there already, and is no sandbox's: use another directory"):
        Sandbox(tmp_path).up()
    assert not Sandbox(tmp_path).down(wipe=True)
    assert (tmp_path / folder / "mine").exists()


def test_nobody_else_enters_the_folders_of_a_secure_sandbox(tmp_path: Path) -> None:
    """They hold keys, keytabs and passwords, whose programs give them modes of their own."""
    Directory(tmp_path).make(private=True)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o700}
