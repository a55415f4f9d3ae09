"""Output logs: a new one for each run, the last lines of one, and no more than a few on a host.

The tee: all that a command writes is passed on and kept, whatever becomes of the reader, the disk or the command.
"""

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ha.program import output_log
from ha.program.output_log import Tee, before, last_lines
from tests.lacks import no_thread_free
from tests.limits import HANGS_S, killed

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


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_a_run_has_a_log_that_only_its_user_reads(home: Path) -> None:
    path = output_log.new("orders", 1, home / "link")
    assert (home / "link").resolve() == path
    assert path.parent == home / "state/hybrid-ha/logs/orders"
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent)] == [0o600, 0o700]


def test_those_of_old_runs_go(home: Path) -> None:
    made = [output_log.new("orders", number, home / "link") for number in range(output_log.RUNS + 2)]
    output_log.before(made[-1]).touch()
    assert output_log.new("orders", 99, home / "link") not in made
    assert len(output_log.runs("orders")) == output_log.RUNS
    assert output_log.runs("orders")[-2:-1] == made[-1:]
    assert output_log.parts(made[-1]) == [output_log.before(made[-1]), made[-1]]
    assert output_log.runs("shop") == []


def test_without_a_place_the_log_is_kept_where_the_run_has_its_files(home: Path) -> None:
    (home / "state").touch()
    link = home / "link"
    link.symlink_to("gone")
    assert output_log.new("orders", 1, link) == link
    assert not link.is_symlink()


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("", ""),
        ("one", "one"),
        ("one\ntwo\n\n", "one\ntwo"),
        ("".join(f"{number}\n" for number in range(80)), "\n".join(map(str, range(30, 80)))),
        ("x" * 3000 + "\n" + "y" * 3000 + "\n", "y" * 3000),
        ("x" * 9000, "x" * 4000),
    ],
)
def test_the_last_lines(home: Path, text: str, last: str) -> None:
    (home / "log").write_text(text)
    assert output_log.last_lines(home / "log") == last
    assert output_log.last_lines(home / "none") == ""


def guarded(place: Path, source: str, **streams: int) -> AbstractContextManager["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", GUARDED, str(place), source]
    return killed(subprocess.Popen(command, text=True, **streams))  # type: ignore[call-overload]


@pytest.mark.programs
def test_both_streams_go_where_they_went_and_into_the_log(tmp_path: Path) -> None:
    source = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    with guarded(tmp_path, source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.communicate(timeout=HANGS_S) == ("out\n", "err\n")
    assert process.returncode == 3
    assert sorted(last_lines(tmp_path / "log").split()) == ["err", "out"]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


@pytest.mark.programs
def test_what_is_written_before_a_kill_is_kept(tmp_path: Path) -> None:
    source = "import os; os.write(2, b'x' * 60000); os.kill(os.getpid(), 9)"
    with guarded(tmp_path, source, stderr=subprocess.PIPE) as process:
        assert len(process.communicate(timeout=HANGS_S)[1]) == 60000
    assert (tmp_path / "log").stat().st_size == 60000


@pytest.mark.programs
def test_a_reader_that_is_gone_does_not_end_the_command(tmp_path: Path) -> None:
    source = f"import sys; sys.stdin.read(); print('x' * 200000, flush=True); open({str(tmp_path / 'done')!r}, 'w')"
    with guarded(tmp_path, source, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(HANGS_S)
    assert process.returncode == 0
    assert (tmp_path / "done").exists()
    assert (tmp_path / "log").stat().st_size == 200001


@pytest.mark.programs
def test_a_disk_that_is_full_does_not_either(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    with guarded(tmp_path, "print('x' * 100000)", stdout=subprocess.PIPE) as process:
        assert len(process.communicate(timeout=HANGS_S)[0]) == 100001
    assert process.returncode == 0


@pytest.mark.programs
def test_a_log_that_is_full_is_put_aside_and_the_newest_stays(tmp_path: Path) -> None:
    source = "import os\nfor i in range(20): os.write(1, b'%07d\\n' % i * 131072)"
    with guarded(tmp_path, source, stdout=subprocess.DEVNULL) as process:
        assert process.wait(HANGS_S) == 0
    assert last_lines(tmp_path / "log").endswith("0000019")
    sizes = [path.stat().st_size for path in (before(tmp_path / "log"), tmp_path / "log")]
    assert max(sizes) <= 8 << 20
    assert sum(sizes) > 8 << 20


@pytest.mark.programs
def test_without_a_free_thread_the_command_waits_until_there_is_one(tmp_path: Path) -> None:
    tee = Tee(tmp_path / "log")
    with no_thread_free("ha-tee"), os.fdopen(os.dup(tee.error), "w") as error:
        tee.start()
        tee.begin()
        error.write("said meanwhile\n")
    assert last_lines(tmp_path / "log") == ""
    tee.finish()
    assert last_lines(tmp_path / "log") == "said meanwhile"
