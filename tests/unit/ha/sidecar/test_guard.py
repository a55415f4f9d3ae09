"""The guard: the command never outlives its leadership, whatever happens to the sidecar or the guard."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ha.leadership.deadline_file import DeadlineWriter
from ha.sidecar.guard import JVM_ENDED
from ha.sidecar.guarded_command import GuardedCommand
from store.clock import now
from tests.unit.ha.programs import alive
from tests.unit.ha.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.programs

LONG = 3600.0

Guard = Callable[..., GuardedCommand]


class Children:
    """Starts commands under guards, with output into a file, and ends all of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.belief = DeadlineWriter(directory / "belief")
        self.belief.write(now() + LONG, now() + LONG)
        self.started: list[GuardedCommand] = []
        self.jvm_file = ""

    def start(self, *command: str, held: Sequence[int] = (), grant: Path | None = None) -> GuardedCommand:
        environment = {"PLACE": str(self.directory), "HA_SPARK_JVM": self.jvm_file}
        child = GuardedCommand(command, environment, self.belief.path, held, grant)
        self.started.append(child)
        return child

    def python(self, source: str) -> GuardedCommand:
        return self.start(sys.executable, "-c", source)

    def pid(self, name: str) -> int:
        """Return the process id that a command has written into a file of that name."""
        file = self.directory / name
        return int(wait_until(lambda: file.exists() and file.read_text().endswith("\n") and file.read_text()))

    def end(self) -> None:
        for child in self.started:
            child.kill()
            child.wait()
        self.belief.close()


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    made = Children(tmp_path)
    yield made
    made.end()


TELL = """
import os, signal, subprocess, sys, time
def tell(name, pid):
    path = os.path.join(os.environ["PLACE"], name)
    with open(path + ".tmp", "w") as file:
        print(pid, file=file)
    os.rename(path + ".tmp", path)
"""
STAYS = TELL + "tell('pid', os.getpid())\nwhile True: signal.pause()\n"
STUBBORN = (
    TELL + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell('pid', os.getpid())\nwhile True: signal.pause()\n"
)
POLITE = TELL + (
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\ntell('pid', os.getpid())\nwhile True: signal.pause()\n"
)
FAMILY = (
    TELL
    + "child = subprocess.Popen([sys.executable, '-c', 'import signal\\nwhile True: signal.pause()'])\n"
    + "tell('grandchild', child.pid)\ntell('pid', os.getpid())\nwhile True: signal.pause()\n"
)


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_it_exits_as_the_command_does(children: Children, code: int) -> None:
    assert children.python(f"import sys; sys.exit({code})").wait() == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_is_128_and_its_number(children: Children, number: int) -> None:
    child = children.python(f"import os, resource; resource.setrlimit(4, (0, 0)); os.kill(os.getpid(), {int(number)})")
    assert child.wait() == 128 + number


LOSES_ITS_JVM = (
    TELL
    + "jvm = subprocess.Popen([sys.executable, '-c', 'import signal\\nwhile True: signal.pause()'])\n"
    + "WHAT\ntell('pid', os.getpid())\nwhile True: signal.pause()\n"
)


@pytest.mark.parametrize(
    "what",
    [
        "tell('jvm', jvm.pid); jvm.kill()",
        "jvm.kill(); jvm.wait(); tell('jvm', jvm.pid)",  # it has ended before the guard can look
    ],
)
def test_a_command_is_killed_when_its_jvm_has_ended(
    children: Children, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    children.jvm_file = str(children.directory / "jvm")
    assert children.python(LOSES_ITS_JVM.replace("WHAT", what)).wait() == 128 + signal.SIGKILL
    assert capfd.readouterr().err == "ha: the command's JVM has ended: the command is killed.\n"
    assert list(children.directory.rglob(f"*{JVM_ENDED}")), "the history will say so"


def test_a_command_that_ends_before_its_jvm_has_ended_by_itself(children: Children) -> None:
    children.jvm_file = str(children.directory / "jvm")
    ends = LOSES_ITS_JVM.replace("WHAT", "tell('jvm', jvm.pid); sys.exit(3)")
    assert children.python(ends).wait() == 3


def test_a_command_that_cannot_be_started_is_127(children: Children, capfd: pytest.CaptureFixture[str]) -> None:
    assert children.start("/no/such/program").wait() == 127
    assert capfd.readouterr().err == "ha: /no/such/program cannot be started: No such file or directory.\n"


def test_arguments_and_environment_arrive_unchanged(children: Children, capfd: pytest.CaptureFixture[str]) -> None:
    shown = "import os, sys; print(sys.argv[1:], os.environ['PLACE'])"
    child = children.start(sys.executable, "-c", shown, "--", "a b", "", "--x=$y", "ä")
    assert child.wait() == 0
    assert capfd.readouterr().out == f"{['--', 'a b', '', '--x=$y', 'ä']} {children.directory}\n"


def test_the_command_has_no_input_and_the_usual_signals(children: Children) -> None:
    source = (
        "import signal, sys\n"
        "assert sys.stdin.read() == ''\n"
        "usual = (signal.SIG_DFL, signal.default_int_handler)\n"
        "assert all(signal.getsignal(n) in usual for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))\n"
    )
    assert children.python(source).wait() == 0


def test_it_dies_when_the_sidecar_does(children: Children) -> None:
    child = children.python(STAYS)
    pid = children.pid("pid")
    child.abandon()  # what the kernel does to the pipe of a sidecar that is gone
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)


def test_it_dies_when_the_belief_runs_out_though_the_sidecar_says_nothing(
    children: Children, capfd: pytest.CaptureFixture[str]
) -> None:
    child = children.python(STAYS)
    pid = children.pid("pid")
    assert alive(pid)
    children.belief.write(now() + 0.3, now() + 0.5)
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)
    assert "the leadership is over and the sidecar does not react" in capfd.readouterr().err


def test_it_lives_as_long_as_the_belief_is_renewed(children: Children) -> None:
    """The deadline is near and always renewed before it passes; the command outlives many old deadlines."""
    child = children.python(STAYS)
    pid = children.pid("pid")
    end = now() + 1.5
    children.belief.write(now() + 1, now() + 1)

    def renew() -> bool:
        children.belief.write(now() + 5, now() + 5)
        return now() > end

    wait_until(renew)
    assert alive(pid)
    children.belief.write(float("-inf"), float("-inf"))
    assert child.wait() == 128 + signal.SIGKILL


def test_it_dies_with_a_guard_that_is_killed(children: Children) -> None:
    child = children.python(STAYS)
    pid = children.pid("pid")
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == 128 + signal.SIGKILL
    wait_until(lambda: not alive(pid))


def test_the_guard_does_not_listen_to_a_terminal(children: Children) -> None:
    child = children.python(STAYS)
    pid = children.pid("pid")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(child.pid, number)
    child.terminate()
    assert child.wait() == 128 + signal.SIGTERM, "the command was asked, and the guard told how it ended"
    assert not alive(pid)


def test_term_asks_and_kill_does_not(children: Children) -> None:
    child = children.python(STUBBORN)
    pid = children.pid("pid")
    for _ in range(3):
        child.terminate()
    wait_until(lambda: not pending(pid, signal.SIGTERM))
    assert alive(pid)
    child.kill()
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)


def pending(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [int(found, 16) for found in re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)", status, re.MULTILINE)]
    return any(mask >> (number - 1) & 1 for mask in masks)


def test_a_command_that_ends_well_because_it_was_asked_to_has_not_finished(children: Children) -> None:
    child = children.python(POLITE)
    children.pid("pid")
    child.terminate()
    assert child.wait() == 128 + signal.SIGTERM


@pytest.mark.parametrize("end", ["terminate", "kill", "pipe", "belief"])
def test_grandchildren_die_too(children: Children, end: str) -> None:
    child = children.python(FAMILY)
    pid, grandchild = children.pid("pid"), children.pid("grandchild")
    match end:
        case "terminate":
            child.terminate()
        case "kill":
            child.kill()
        case "pipe":
            child.abandon()
        case _:
            children.belief.write(0.0, 0.0)
    child.wait()
    wait_until(lambda: not alive(pid) and not alive(grandchild))
    if end in ("terminate", "kill"):
        assert not Path(f"/proc/{grandchild}").exists(), "not even a zombie, which would keep the guard waiting"


def test_orphans_are_reaped_while_the_command_runs(children: Children) -> None:
    orphan = "subprocess.run([sys.executable, '-c', 'import os; os.fork() or os._exit(0)'])\n"
    child = children.python(TELL + orphan + "tell('pid', os.getpid())\nwhile True: signal.pause()\n")
    pid = children.pid("pid")
    wait_until(lambda: Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split() == [str(pid)])
    assert alive(pid)


def test_what_the_command_leaves_behind_is_killed_once_the_leadership_is_over(children: Children) -> None:
    source = FAMILY.replace("while True: signal.pause()\n", "")
    child = children.python(source)
    grandchild = children.pid("grandchild")
    children.belief.write(now() + 0.3, now() + 0.5)
    assert child.wait() == 0
    wait_until(lambda: not alive(grandchild))


CLEANS_UP = (
    TELL
    + "cleaning = 'import pathlib, time; time.sleep(2); pathlib.Path(\"cleaned\").touch()'\n"
    + "child = subprocess.Popen([sys.executable, '-c', cleaning], cwd=os.environ['PLACE'])\n"
    + "tell('grandchild', child.pid)\nWHAT\n"
)


@pytest.mark.parametrize(
    ("what", "code", "cleaned"),
    [
        pytest.param("sys.exit(3)", 3, True, id="ended"),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", 143, True, id="terminated"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", 137, False, id="killed"),
    ],
)
def test_the_rest_has_time_to_clean_up_unless_the_command_was_killed(
    children: Children, what: str, code: int, *, cleaned: bool
) -> None:
    child = children.python(CLEANS_UP.replace("WHAT", what))
    assert child.wait() == code
    assert not alive(children.pid("grandchild"))
    assert (children.directory / "cleaned").exists() == cleaned


def test_telling_a_guard_that_has_ended_is_no_error(children: Children) -> None:
    child = children.python("")
    assert child.wait() == 0
    child.terminate()
    child.kill()


def test_no_descriptor_is_left_open(children: Children) -> None:
    """A sidecar may start its command many times, so nothing may leak."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        children.python("").wait()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_without_a_belief_no_command_is_started(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "ha.sidecar.guard",
        str(tmp_path / "none"),
        "--",
        "touch",
        str(tmp_path / "ran"),
    ]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()


def test_a_command_is_not_started_by_a_directory_called_ha(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "__init__.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    assert children.python("").wait() == 0


def sockets(pid: int) -> set[str]:
    """Return the sockets that a process has open."""
    found = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
    return {each for each in found if each.startswith("socket:")}


def test_what_shows_that_the_sidecar_lives_is_held_by_the_guard_and_not_by_the_command(children: Children) -> None:
    """A connection to a killed sidecar is refused only once its command is gone too."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        child = children.start(sys.executable, "-c", STAYS, held=[listening.fileno()])
        command = children.pid("pid")
        assert sockets(child.pid)
        assert not sockets(command)
    with socket.create_connection(address) as waiting:  # as after a kill -9: nobody accepts it, and nobody refuses it
        child.kill()
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)
    assert not alive(command)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    child.wait()


# --- a command that warms up


def test_a_command_that_was_granted_nothing_lives_without_a_leadership(children: Children) -> None:
    children.belief.write(now() - 10, now() - 10)
    child = children.start(sys.executable, "-c", "import time; time.sleep(1)", grant=children.directory / "grant")
    assert child.wait() == 0, "four looks of the guard"


def test_a_command_that_was_granted_something_is_killed_as_any_other(children: Children) -> None:
    grant = children.directory / "grant"
    children.belief.write(now() - 10, now() - 10)
    child = children.start(sys.executable, "-c", STUBBORN, grant=grant)
    pid = children.pid("pid")
    assert alive(pid)
    grant.touch()
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)


def test_a_command_that_warms_up_dies_with_its_sidecar(children: Children) -> None:
    child = children.start(sys.executable, "-c", STUBBORN, grant=children.directory / "grant")
    pid = children.pid("pid")
    child.abandon()
    wait_until(lambda: not alive(pid))
