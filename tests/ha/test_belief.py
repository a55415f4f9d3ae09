"""The belief that a sidecar shares: what another process reads is never half of one thing and half of another."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ha.belief import BeliefReader, BeliefWriter
from store.clock import now
from tests.ha.waiting import PATIENCE

NEVER = float("-inf")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "belief"


def test_at_first_nothing_is_believed(path: Path) -> None:
    writer = BeliefWriter(path)
    reader = BeliefReader(path)
    assert reader.read() == (NEVER, NEVER)
    assert not reader.is_leader()
    writer.close()


def test_what_is_written_is_read(path: Path) -> None:
    writer, reader = BeliefWriter(path), BeliefReader(path)
    writer.write(now() + 100, now() + 200)
    assert reader.is_leader()
    assert reader.read()[1] > reader.read()[0]
    writer.write(now() - 1, now() + 200)
    assert not reader.is_leader()
    writer.close()


def test_only_its_own_user_can_read_it(path: Path) -> None:
    writer = BeliefWriter(path)
    assert path.stat().st_mode & 0o777 == 0o600
    writer.close()


def test_a_reader_goes_on_after_the_file_was_removed(path: Path) -> None:
    writer = BeliefWriter(path)
    reader = BeliefReader(path)
    writer.write(1.0, 2.0)
    writer.close()
    assert not path.exists()
    assert reader.read() == (1.0, 2.0)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        BeliefReader(path)


@pytest.mark.parametrize("size", [0, 1, 23])
def test_a_file_that_is_too_short(path: Path, size: int) -> None:
    path.write_bytes(b"\0" * size)
    with pytest.raises(OSError, match="too short"):
        BeliefReader(path)


def test_a_half_written_record_means_no_leadership(path: Path) -> None:
    path.write_bytes(struct.pack("<Qdd", 7, 1e9, 1e9))
    reader = BeliefReader(path)
    assert reader.read() == (NEVER, NEVER)
    assert not reader.is_leader()


READS = """
import sys
from pathlib import Path
from ha.belief import BeliefReader
reader = BeliefReader(Path(sys.argv[1]))
print("ready", flush=True)
seen = set()
while True:
    leads, holds = reader.read()
    if leads == float("-inf"):
        continue
    assert holds == leads + 1, (leads, holds)
    seen.add(leads)
    if leads >= 1e6:
        break
print(len(seen))
"""


def test_another_process_never_reads_a_torn_record(path: Path) -> None:
    writer = BeliefWriter(path)
    writer.write(0.0, 1.0)
    with subprocess.Popen([sys.executable, "-c", READS, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        count = 0
        while count < 200_000 or (other.poll() is None and count < 2_000_000):
            count += 1
            writer.write(float(count), count + 1.0)
            if count == 200_000:
                writer.write(1e6, 1e6 + 1)
                break
        distinct = other.stdout.readline()
        assert other.wait(PATIENCE) == 0
    assert int(distinct) > 10, "it read while it was being written"
    writer.close()


def test_a_record_without_the_counter_would_be_torn(path: Path) -> None:
    """The canary: with a writer that does not mark what is half written, a reader can see halves."""
    path.write_bytes(struct.pack("<Qdd", 0, 0.0, 1.0))
    reader = BeliefReader(path)
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, struct.pack("<d", 5.0), 8)
    os.close(descriptor)
    leads, holds = reader.read()
    assert holds != leads + 1
