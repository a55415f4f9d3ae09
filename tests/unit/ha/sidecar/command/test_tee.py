"""The tee: all that a command writes is passed on and kept, whatever becomes of the reader, the disk or the command."""

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ha.program.output_log import before
from ha.program.output_log import last_lines as last
from ha.sidecar.command.tee import Tee
from tests.lacks import no_thread_free
from tests.limits import HANGS_S, killed

pytestmark = pytest.mark.programs

GUARDED = """
import sys
from pathlib import Path
from ha.program.deadline_file import DeadlineWriter
from ha.sidecar.command.guarded_command import GuardedCommand
from store.clock import now
belief = DeadlineWriter(Path(sys.argv[1], "belief"))
belief.write(now() + 3600, now() + 3600)
command = [sys.executable, "-c", sys.argv[2]]
sys.exit(GuardedCommand(command, {}, belief.path, output=Path(sys.argv[1], "log")).wait())
"""


def guarded(place: Path, source: str, **streams: int) -> AbstractContextManager["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", GUARDED, str(place), source]
    return killed(subprocess.Popen(command, text=True, **streams))  # type: ignore[call-overload]


def test_both_streams_go_where_they_went_and_into_the_log(tmp_path: Path) -> None:
    source = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    with guarded(tmp_path, source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.communicate(timeout=HANGS_S) == ("out\n", "err\n")
    assert process.returncode == 3
    assert sorted(last(tmp_path / "log").split()) == ["err", "out"]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_what_is_written_before_a_kill_is_kept(tmp_path: Path) -> None:
    source = "import os; os.write(2, b'x' * 60000); os.kill(os.getpid(), 9)"
    with guarded(tmp_path, source, stderr=subprocess.PIPE) as process:
        assert len(process.communicate(timeout=HANGS_S)[1]) == 60000
    assert (tmp_path / "log").stat().st_size == 60000


def test_a_reader_that_is_gone_does_not_end_the_command(tmp_path: Path) -> None:
    source = f"import sys; sys.stdin.read(); print('x' * 200000, flush=True); open({str(tmp_path / 'done')!r}, 'w')"
    with guarded(tmp_path, source, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(HANGS_S)
    assert process.returncode == 0
    assert (tmp_path / "done").exists()
    assert (tmp_path / "log").stat().st_size == 200001


def test_a_disk_that_is_full_does_not_either(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    with guarded(tmp_path, "print('x' * 100000)", stdout=subprocess.PIPE) as process:
        assert len(process.communicate(timeout=HANGS_S)[0]) == 100001
    assert process.returncode == 0


def test_a_log_that_is_full_is_put_aside_and_the_newest_stays(tmp_path: Path) -> None:
    source = "import os\nfor i in range(20): os.write(1, b'%07d\\n' % i * 131072)"
    with guarded(tmp_path, source, stdout=subprocess.DEVNULL) as process:
        assert process.wait(HANGS_S) == 0
    assert last(tmp_path / "log").endswith("0000019")
    sizes = [path.stat().st_size for path in (before(tmp_path / "log"), tmp_path / "log")]
    assert max(sizes) <= 8 << 20
    assert sum(sizes) > 8 << 20


def test_without_a_free_thread_the_command_waits_until_there_is_one(tmp_path: Path) -> None:
    tee = Tee(tmp_path / "log")
    with no_thread_free("ha-tee"), os.fdopen(os.dup(tee.error), "w") as error:
        tee.start()
        tee.begin()
        error.write("said meanwhile\n")
    assert last(tmp_path / "log") == ""
    tee.finish()
    assert last(tmp_path / "log") == "said meanwhile"
