"""Deadline file: another process never reads a half-written record."""

import itertools
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ha.program.deadline_file import _RECORD, DeadlineReader, DeadlineWriter, _place
from store.clock import now
from tests.lacks import small_disk
from tests.limits import killed
from tests.patience import PATIENCE_S

NEVER = float("-inf")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "belief"


def test_a_new_file_grants_nothing(path: Path) -> None:
    writer = DeadlineWriter(path)
    reader = DeadlineReader(path)
    assert reader.read() == (NEVER, NEVER)
    assert not reader.is_leader()
    writer.close()


def test_deadlines_are_read_back(path: Path) -> None:
    writer, reader = DeadlineWriter(path), DeadlineReader(path)
    writer.write(now() + 100, now() + 200)
    assert reader.is_leader()
    assert reader.read()[1] > reader.read()[0]
    writer.write(now() - 1, now() + 200)
    assert not reader.is_leader()
    writer.close()


def test_only_its_own_user_can_read_it(path: Path) -> None:
    writer = DeadlineWriter(path)
    assert path.stat().st_mode & 0o777 == 0o600
    writer.close()


def test_a_reader_goes_on_after_the_file_was_removed(path: Path) -> None:
    writer = DeadlineWriter(path)
    reader = DeadlineReader(path)
    writer.write(1.0, 2.0)
    writer.close()
    assert not path.exists()
    assert reader.read() == (1.0, 2.0)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        DeadlineReader(path)


@pytest.mark.parametrize("size", [0, 1, 39])
def test_a_file_that_is_too_short(path: Path, size: int) -> None:
    path.write_bytes(b"\0" * size)
    with pytest.raises(OSError, match="too short"):
        DeadlineReader(path)


def test_a_half_written_record_leaves_what_was_said_before(path: Path) -> None:
    """A writer that lost its core in between made guards kill healthy commands on a busy machine."""
    writer, reader = DeadlineWriter(path), DeadlineReader(path)
    for number in range(5):
        said = now() + 100 + number, now() + 200 + number
        writer.write(*said)
        _RECORD.pack_into(writer._maps[0], _place(writer._count + 1), float("nan"), 1.0)
        assert reader.read() == said
        assert DeadlineReader(path).read() == said
        assert reader.is_leader()
    writer.close()


@pytest.mark.parametrize("count", [6, 7])
def test_damaged_content_means_no_leadership(path: Path, count: int) -> None:
    good, bad = (now() + 100, now() + 200), (float("nan"), now() + 200)
    path.write_bytes(struct.pack("<Qdddd", count, *(bad if count == 6 else good), *(good if count == 6 else bad)))
    reader = DeadlineReader(path)
    assert reader.read() == (NEVER, NEVER)
    assert not reader.is_leader()


READS = """
import sys
from pathlib import Path
from ha.program.deadline_file import DeadlineReader
reader = DeadlineReader(Path(sys.argv[1]))
enough = int(sys.argv[2])
print("ready", flush=True)
seen = set()
while True:
    leads, holds = reader.read()
    assert holds == leads + 1, (leads, holds)
    seen.add(leads)
    if len(seen) >= enough:
        break
"""

ENOUGH = 10_000
"""Records that the other process reads while they are being written."""


def test_another_process_never_reads_a_torn_record(path: Path) -> None:
    writer = DeadlineWriter(path)
    writer.write(0.0, 1.0)
    command = [sys.executable, "-c", READS, str(path), f"{ENOUGH}"]
    with killed(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        deadline = now() + PATIENCE_S
        for count in itertools.count(1):
            writer.write(float(count), count + 1.0)
            if count % 1000 == 0 and (other.poll() is not None or now() > deadline):
                break
    assert other.returncode == 0
    writer.close()


def test_a_record_without_the_counter_would_be_torn(path: Path) -> None:
    """The canary: a writer that wrote over the record that counts would show a torn one."""
    path.write_bytes(struct.pack("<Qdddd", 0, 0.0, 1.0, 0.0, 1.0))
    reader = DeadlineReader(path)
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, struct.pack("<d", 5.0), 8)
    os.close(descriptor)
    leads, holds = reader.read()
    assert holds != leads + 1


@pytest.mark.parametrize("as_it_wrote", [False, True])
def test_a_file_of_a_dead_process_says_what_it_said_until_its_successor_writes(path: Path, as_it_wrote: bool) -> None:
    dead, reader = DeadlineWriter(path), DeadlineReader(path)
    dead.write(now() + 100, now() + 200)
    said = reader.read()
    if as_it_wrote:
        _RECORD.pack_into(dead._maps[0], _place(dead._count + 1), float("nan"), 1.0)
    writer = DeadlineWriter(path, resume=True)
    assert reader.read() == said
    writer.write(now() + 300, now() + 400)
    assert reader.read()[0] > said[1]
    writer.close()
    assert not path.exists()


@pytest.mark.parametrize("size", [None, 0, 39, 41])
def test_no_other_file_is_resumed(path: Path, size: int | None) -> None:
    if size is not None:
        path.write_bytes(bytes(size))
    with pytest.raises(OSError, match=r"No such file|too short|too long"):
        DeadlineWriter(path, resume=True)
    assert path.exists() == (size is not None)


def test_a_file_that_is_made_again_says_the_same_from_its_first_moment_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to those that have mapped the one that is gone, until they are forgotten."""
    writer, old = DeadlineWriter(path), DeadlineReader(path)
    writer.write(now() + 100, now() + 200)
    said, shown, rename = old.read(), list[tuple[float, float]](), Path.rename
    writer.make(path)
    path.unlink()

    def look(staged: Path, target: Path) -> Path:
        shown.append(DeadlineReader(staged).read())
        return rename(staged, target)

    monkeypatch.setattr(Path, "rename", look)
    writer.make(path)
    new = DeadlineReader(path)
    assert shown == [said] == [new.read()] == [old.read()]
    for ahead in (300, 400, 500):
        writer.write(now() + ahead, now() + ahead + 100)
        assert new.read() == old.read() != said
    last = old.read()
    writer.forget()
    writer.write(now() + 600, now() + 700)
    assert (old.read(), new.read()[0] > last[1]) == (last, True)
    writer.close()
    assert not path.exists()


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        DeadlineWriter(path)._maps[0].close()
        DeadlineWriter(path, resume=True)._maps[0].close()
        DeadlineReader(path)._map.close()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


FULL = """
import sys
from pathlib import Path
from ha.program.deadline_file import DeadlineWriter
from tests.lacks import fill
fill(Path(sys.argv[1], "rest"))
try:
    DeadlineWriter(Path(sys.argv[1], "belief"))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.programs
def test_a_disk_that_is_full_is_an_error_and_no_signal_that_kills(tmp_path: Path) -> None:
    with small_disk(tmp_path):
        command = [sys.executable, "-c", FULL, f"{tmp_path}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "No space left on device\n")
