"""Tests of the cache: a file is made once, again when damaged, and never in part."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ha.hosts.cache import cache_directory, cached, cached_folder, digest_of, intact
from ha.hosts.host_error import HostError
from tests.patience import PATIENCE_S
from tests.unit.ha.nobody import NOBODY, needs_root


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "thing").write_text("content")
        (folder / "rubbish").write_text("left behind")


def test_it_is_made_once(tmp_path: Path) -> None:
    maker = Maker()
    path = tmp_path / "cache" / "thing"
    assert cached(path, maker) == path
    assert cached(path, maker).read_text() == "content"
    assert maker.calls == 1


@pytest.mark.parametrize("damaged", ["thing", "thing.sha256"])
@pytest.mark.parametrize("damage", [b"", b"conteNt", b"\xff\xfe"])
def test_a_damaged_file_is_made_again(tmp_path: Path, damaged: str, damage: bytes) -> None:
    maker = Maker()
    path = cached(tmp_path / "thing", maker)
    (tmp_path / damaged).write_bytes(damage)
    assert not intact(path)
    assert cached(path, maker).read_text() == "content"
    assert maker.calls == 2
    assert intact(path)


def test_nothing_else_is_left(tmp_path: Path) -> None:
    cached(tmp_path / "thing", Maker())
    assert {path.name for path in tmp_path.iterdir()} == {"thing", "thing.sha256", "thing.lock"}


def test_what_a_killed_process_has_left_goes_when_it_is_made_again(tmp_path: Path) -> None:
    left = tmp_path / "making-thing"
    left.mkdir()
    (left / "half").touch()

    def make(folder: Path) -> None:
        assert not list(folder.iterdir())
        Maker()(folder)

    cached(tmp_path / "thing", make)
    assert not left.exists()


def pair(folder: Path) -> None:
    (folder / "a.jar").write_text("one")
    (folder / "b.jar").write_text("two")


@pytest.fixture
def digest(tmp_path: Path) -> str:
    (tmp_path / "known").mkdir()
    pair(tmp_path / "known")
    return digest_of(tmp_path / "known")


def test_a_folder_is_made_once_and_leaves_nothing_else(tmp_path: Path, digest: str) -> None:
    cache = tmp_path / "cache"
    assert [each.name for each in cached_folder(cache / "jars", digest, pair)] == ["a.jar", "b.jar"]
    assert [each.name for each in cached_folder(cache / "jars", digest, lambda _: pytest.fail("it is there"))]
    assert {path.name for path in cache.iterdir()} == {"jars", "jars.lock"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda jars: (jars / "a.jar").write_text("two"),
        lambda jars: (jars / "b.jar").unlink(),
        lambda jars: (jars / "c.jar").touch(),
        lambda jars: (jars / "b.jar").rename(jars / "c.jar"),
    ],
)
def test_a_damaged_folder_is_made_again(tmp_path: Path, digest: str, damage: Callable[[Path], object]) -> None:
    cached_folder(tmp_path / "jars", digest, pair)
    damage(tmp_path / "jars")
    assert [each.read_text() for each in cached_folder(tmp_path / "jars", digest, pair)] == ["one", "two"]


def test_a_folder_of_other_files_is_refused_and_not_kept(tmp_path: Path, digest: str) -> None:
    with pytest.raises(HostError, match=r"fetched for jars has the wrong SHA-256 checksum \([0-9a-f]{64}\)"):
        cached_folder(tmp_path / "cache" / "jars", digest, lambda folder: (folder / "a.jar").touch())
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"jars.lock"}


def test_two_at_once_make_one(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)
    maker = Maker()

    def want() -> str:
        both.wait()
        return cached(tmp_path / "thing", maker).read_text()

    with ThreadPoolExecutor(2) as threads:
        assert [each.result() for each in [threads.submit(want), threads.submit(want)]] == ["content", "content"]
    assert maker.calls == 1


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "thing").write_text("half")
        raise HostError("no network")

    with pytest.raises(HostError, match="no network"):
        cached(tmp_path / "thing", fail)
    assert {path.name for path in tmp_path.iterdir()} == {"thing.lock"}


def test_an_impossible_place_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"The cache .* cannot be used"):
        cached(tmp_path / "file" / "below" / "thing", Maker())


def test_the_user_chooses_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "hybrid-ha"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "hybrid-ha"


@pytest.mark.parametrize("name", ["thing", "thing.sha256"])
@pytest.mark.parametrize("plant", [lambda it: os.chown(it, NOBODY, NOBODY), lambda it: it.chmod(0o664)])
@needs_root
def test_what_another_user_can_write_is_made_again(tmp_path: Path, name: str, plant: Callable[[Path], None]) -> None:
    maker = Maker()
    path = cached(tmp_path / "thing", maker)
    plant(tmp_path / name)
    assert not intact(path), "its checksum is right"
    assert cached(path, maker).read_text() == "content"
    assert (maker.calls, intact(path)) == (2, True)


def test_whatever_the_umask_is_nobody_else_may_write(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = cached(tmp_path / "cache" / "thing", Maker())
    finally:
        os.umask(before)
    assert intact(path)


@pytest.mark.parametrize("link", [False, True])
def test_a_cache_in_which_others_may_write_is_refused(tmp_path: Path, digest: str, *, link: bool) -> None:
    folder = tmp_path / "cache"
    path = cached(folder / "thing", Maker())
    if link:
        folder = folder.rename(tmp_path / "elsewhere")
        (tmp_path / "cache").symlink_to(folder)
        assert intact(path), "somebody may keep his cache elsewhere"
    folder.chmod(0o777)
    assert not intact(path)
    with pytest.raises(HostError, match=r"others may write in it: chmod go-w .*/cache, or set XDG_CACHE_HOME"):
        cached(path, Maker())
    with pytest.raises(HostError, match="others may write in it"):
        cached_folder(tmp_path / "cache" / "pair", digest, pair)


@needs_root
def test_a_folder_below_the_cache_is_no_better_than_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = cached(cache_directory() / "programs" / "thing", Maker())
    os.chown(cache_directory(), NOBODY, NOBODY)
    assert not intact(path)
