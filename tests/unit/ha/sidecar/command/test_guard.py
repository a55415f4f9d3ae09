"""The guard: the command never outlives its leadership, whatever happens to the sidecar or the guard."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from ha.program.deadline_file import DeadlineWriter
from ha.sidecar.command import offspring, orphan
from ha.sidecar.command.guard import JVM_ENDED
from ha.sidecar.command.guarded_command import GuardedCommand
from store.clock import now
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import alive
from tests.unit.ha.waiting import wait_until

if TYPE_CHECKING:
    from ha.sidecar.command.slot import Left

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

    def start(
        self, *command: str, held: Sequence[int] = (), grant: Path | None = None, marked: bool = False
    ) -> GuardedCommand:
        environment = {"PLACE": str(self.directory), "HA_SPARK_JVM": self.jvm_file}
        environment |= {"HA_BELIEF": str(self.belief.path)} if marked else {}
        child = GuardedCommand(command, environment, self.belief.path, held, grant)
        self.started.append(child)
        return child

    def python(self, source: str) -> GuardedCommand:
        return self.start(sys.executable, "-c", source)

    def pid(self, name: str) -> int:
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
    + "def start(): return subprocess.Popen([sys.executable, '-c', 'import signal\\nwhile True: signal.pause()'])\n"
    + "jvm = start()\n"
    + "WHAT\ntell('pid', os.getpid())\nwhile True: signal.pause()\n"
)
DRIVES = "tell('jvm.driver', os.getpid()); "


@pytest.mark.parametrize(
    "what",
    [
        DRIVES + "tell('jvm', jvm.pid); jvm.kill()",
        "tell('jvm', jvm.pid); " + DRIVES + "jvm.kill()",
        DRIVES + "jvm.kill(); jvm.wait(); tell('jvm', jvm.pid)",  # it has ended before the guard can look
    ],
)
def test_a_command_is_killed_when_its_driver_has_lost_its_jvm(
    children: Children, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    children.jvm_file = str(children.directory / "jvm")
    assert children.python(LOSES_ITS_JVM.replace("WHAT", what)).wait() == 128 + signal.SIGKILL
    assert capfd.readouterr().err == "ha: the command's JVM has ended: the command is killed.\n"
    assert list(children.directory.rglob(f"*{JVM_ENDED}")), "the history will say so"


def watched(guard: GuardedCommand) -> int:
    """Count the processes whose end a guard waits for: its command is one."""
    found = 0
    for each in Path(f"/proc/{guard.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it is closed meanwhile
            found += str(each.readlink()) == "anon_inode:[pidfd]"
    return found


@pytest.mark.parametrize(
    ("driver", "others"),
    [
        ("one = start(); one.kill(); tell('jvm.driver', one.pid)", 2),  # as `spark-submit orders.py | tee log` does
        ("", 1),  # it is no Python
    ],
)
def test_a_command_goes_on_when_its_jvm_has_ended_with_its_driver(children: Children, driver: str, others: int) -> None:
    children.jvm_file = str(children.directory / "jvm")
    goes_on = f"{driver}\ntell('jvm', jvm.pid); signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))"
    child = children.python(LOSES_ITS_JVM.replace("WHAT", goes_on))
    pid = children.pid("pid")
    wait_until(lambda: watched(child) == 1 + others, what="the guard knows the JVM")
    os.kill(children.pid("jvm"), signal.SIGKILL)
    wait_until(lambda: watched(child) == 1, what="the guard knows that it has ended")
    os.kill(pid, signal.SIGUSR1)
    assert child.wait() == 0
    assert not list(children.directory.rglob(f"*{JVM_ENDED}"))


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


@pytest.mark.parametrize("program", [POLITE, STAYS], ids=["ends with 0", "is ended"])
def test_a_service_whose_command_is_the_first_to_end_has_neither_finished_nor_failed(
    children: Children, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(orphan, "TOGETHER_S", PATIENCE_S)
    child = children.python(program)
    pid = children.pid("pid")
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(child.wait)
        os.kill(pid, signal.SIGTERM)  # systemd tells each process of a service; then the sidecar hears of it
        wait_until(lambda: not alive(child.pid))
        assert not ended.done()
        child.terminate()
        assert ended.result(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_command_that_was_taken_up_is_not_believed_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan, "TOGETHER_S", PATIENCE_S)
    ours, guards = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    taken_up = orphan.Orphan(cast("Left", None), ours, 0, -1)
    with guards, ThreadPoolExecutor(1) as pool:
        ended = pool.submit(taken_up.wait)
        guards.send(b"\0")
        wait_until(lambda: ours.fileno() < 0)
        assert not ended.done()
        taken_up.terminate()
        assert ended.result(PATIENCE_S) == 128 + signal.SIGTERM


def test_orphans_are_reaped_while_the_command_runs(children: Children) -> None:
    orphan = "subprocess.run([sys.executable, '-c', 'import os; os.fork() or os._exit(0)'])\n"
    child = children.python(TELL + orphan + "tell('pid', os.getpid())\nwhile True: signal.pause()\n")
    pid = children.pid("pid")
    wait_until(lambda: Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split() == [str(pid)])
    assert alive(pid)


def test_what_the_command_leaves_behind_is_killed_once_the_leadership_is_over(children: Children) -> None:
    source = FAMILY.replace("while True: signal.pause()\n", "")
    child = children.python(source)
    grandchild, command = children.pid("grandchild"), children.pid("pid")
    wait_until(lambda: not alive(command))
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
        sys.executable, "-P", "-m", "ha.sidecar.command.guard", str(tmp_path / "none"), "--", "touch",
        str(tmp_path / "ran"),
    ]  # fmt: skip
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_it_hears_how_its_command_has_ended_whatever_its_parent_does(
    children: Children, handler: signal.Handlers
) -> None:
    """Of a process that ignores SIGCHLD the kernel keeps no exit codes, and a program that is started inherits that."""
    guard = [sys.executable, "-P", "-m", "ha.sidecar.command.guard", str(children.belief.path), "--"]
    started = subprocess.Popen(
        [*guard, sys.executable, "-c", "import sys; sys.exit(3)"], stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, handler),  # noqa: PLW1509
    )  # fmt: skip
    with started:
        assert started.wait(PATIENCE_S) == 3


def test_a_command_is_not_started_by_a_directory_called_ha(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "__init__.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    assert children.python("").wait() == 0


def sockets(pid: int) -> set[str]:
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


def test_a_command_that_was_granted_nothing_lives_without_a_leadership(children: Children) -> None:
    children.belief.write(now() - 10, now() - 10)
    child = children.start(sys.executable, "-c", STAYS, grant=children.directory / "grant")
    pid, before = children.pid("pid"), looks(child.pid)
    wait_until(lambda: looks(child.pid) >= before + 4)
    assert alive(pid)


def looks(guard: int) -> int:
    """How often a guard has gone to sleep: it does so after each look."""
    found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", Path(f"/proc/{guard}/status").read_text(), re.MULTILINE)
    return int(found[1]) if found is not None else 0


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


ESCAPES = TELL + (
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "def stay(name):\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN); tell(name, os.getpid())\n"
    "    while True: signal.pause()\n"
    "if os.fork() == 0:\n"
    "    os.setsid(); stay('session')\n"
    "if os.fork() == 0:\n"
    "    os.setpgid(0, 0); stay('group')\n"
    "middle = os.fork()\n"
    "if middle == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0: stay('orphan')\n"
    "    os._exit(0)\n"
    "os.waitpid(middle, 0)\n"
    'bare = \'import os, signal; open("bare.tmp", "w").write(f"{os.getpid()}\\\\n"); os.rename("bare.tmp", "bare")\'\n'
    "bare += '\\nwhile True: signal.pause()'\n"
    "subprocess.Popen([sys.executable, '-c', bare], env={}, cwd=os.environ['PLACE'], start_new_session=True)\n"
    "while not all(os.path.exists(os.path.join(os.environ['PLACE'], each))\n"
    "              for each in ('session', 'group', 'orphan', 'bare')): time.sleep(0.01)\n"
    "tell('pid', os.getpid())\n"
)
ESCAPED = ("session", "group", "orphan", "bare")
"""In another session, in another group, without its parent, and without its environment."""


@pytest.mark.parametrize("how", ["exit", "asked", "killed", "deadline", "sidecar", "command killed"])
def test_nothing_that_the_command_has_started_outlives_it(children: Children, how: str) -> None:
    command = children.python(ESCAPES + ("sys.exit(3)" if how == "exit" else "stay('stays')"))
    if how != "exit":
        children.pid("stays")
    escaped = [children.pid(name) for name in ESCAPED]
    match how:
        case "asked":
            command.terminate()
            command.kill()
        case "killed":
            command.kill()
        case "deadline":
            children.belief.write(now(), now())
        case "sidecar":
            command.abandon()
        case "command killed":
            os.kill(children.pid("pid"), signal.SIGKILL)
    code = command.wait()
    left = {name: pid for name, pid in zip(ESCAPED, escaped, strict=True) if alive(pid)}
    for pid in left.values():  # a test that fails leaves nothing on the host either
        os.kill(pid, signal.SIGKILL)
    assert not left
    assert code == (3 if how == "exit" else 128 + signal.SIGKILL)
    assert not alive(children.pid("pid"))
    if how in ("asked", "killed"):
        assert not any(Path(f"/proc/{pid}").exists() for pid in escaped), "a zombie would keep the guard waiting"


def test_a_killed_guard_leaves_nothing_that_knows_its_sidecar(children: Children) -> None:
    """One that has left its session and cleared its environment cannot be found then."""
    command = children.start(sys.executable, "-c", ESCAPES + "stay('stays')", marked=True)
    children.pid("stays")
    escaped = [children.pid(name) for name in ESCAPED]
    os.kill(command.pid, signal.SIGKILL)
    assert command.wait() == 128 + signal.SIGKILL
    left = [name for name, pid in zip(ESCAPED, escaped, strict=True) if alive(pid)]
    os.kill(escaped[-1], signal.SIGKILL)
    assert left == ["bare"]


def test_what_cannot_be_ended_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A child whose end is not collected is such a one."""
    monkeypatch.setattr(offspring, "END_WITHIN_S", 0.1)
    child = subprocess.Popen([sys.executable, "-c", ""])
    offspring.end_all(lambda: [child.pid])
    child.wait(PATIENCE_S)
    assert f"cannot be ended, and may still work: {child.pid} 'python" in capfd.readouterr().err


def test_a_guard_and_its_command_have_what_quit_usually_does(children: Children) -> None:
    child = children.python(STAYS)
    pid = children.pid("pid")
    os.kill(child.pid, signal.SIGQUIT)
    os.kill(pid, signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM, "the guard goes on"
