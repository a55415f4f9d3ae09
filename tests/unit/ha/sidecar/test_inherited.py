"""What a process inherits from its parent changes nothing: `ha run`, daemon and agent set what they need."""

import re
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from leader.layout.lease import Mode
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import ENDS, NOTES, STAYS, Notes, shown, state
from tests.unit.ha.programs import HA, Program, Workplace, alive
from tests.unit.ha.waiting import wait_until

CHILD, TERM, BLOCKED = "SIGCHLD is ignored", "TERM is blocked", "all signals are blocked"
CLOSED, UMASK, REMOVED = "descriptors 0 to 2 are closed", "umask 0777", "the working directory is removed"

# Root may read what its umask has closed, unless it starts without that capability.
NO_OVERRIDE = "import ctypes\nfor each in (1, 2): ctypes.CDLL(None).prctl(24, each, 0, 0, 0)\n"

PARENTS = {
    CHILD: "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    TERM: "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])",
    BLOCKED: "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    CLOSED: "os.closerange(0, 3)",
    UMASK: f"{NO_OVERRIDE}os.umask(0o777)",
    REMOVED: "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
}
"""What the parent of a process does before it starts it."""

ONCE = {"HA_RESTART_STRATEGY": "none", "HA_FAILOVER_MAX_ATTEMPTS": "1"}
ORPHANS = STAYS.replace("note('runs')", "os.fork() or (os.fork() or os._exit(0), os._exit(0))\nos.wait()\nnote('runs')")


def started(workplace: Workplace, inherited: str, *arguments: str, **environment: str) -> Program:
    """Start `ha` from a parent that hands this on."""
    parent = f"import os, signal, sys\n{PARENTS[inherited]}\nos.execv(sys.executable, {[*HA, *arguments]!r})"
    return workplace.start(sys.executable, "-c", parent, **environment)


def run(workplace: Workplace, inherited: str, source: str, *options: str, **environment: str) -> Program:
    command = ("run", "orders", "--contender", "a", *options, "--", sys.executable, "-c", source)
    return started(workplace, inherited, *command, **environment)


def failures(workplace: Workplace) -> list[str]:
    return [each["class"] for each in shown(workplace, "job", "exceptions")]


def a_failure(workplace: Workplace, _: Notes, inherited: str) -> None:
    assert run(workplace, inherited, ENDS, CODE="3", **ONCE).wait() == 1
    assert state(workplace)[2] == ["status=FAILED"]
    assert failures(workplace) == ["exit-3", "gave-up"]


def a_success(workplace: Workplace, _: Notes, inherited: str) -> None:
    assert run(workplace, inherited, ENDS, CODE="0", **ONCE).wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]


def a_signal(workplace: Workplace, notes: Notes, inherited: str) -> None:
    leader = run(workplace, inherited, STAYS)
    notes.until(1, leader)
    leader.send(signal.SIGTERM)
    assert leader.wait() == 128 + signal.SIGTERM
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert (lease := state(workplace)[1].lease) is not None
    assert lease.mode is Mode.RELEASED


def a_probe(workplace: Workplace, _: Notes, inherited: str) -> None:
    probe = ("--liveness-probe=exec:false", "--liveness-period=0.2", "--liveness-initial-delay=0")
    leader = run(workplace, inherited, STAYS, *probe, **ONCE)
    assert leader.wait() == 1
    assert failures(workplace) == ["probe-failed", "gave-up"]


def an_orphan(workplace: Workplace, notes: Notes, inherited: str) -> None:
    leader = run(workplace, inherited, ORPHANS)
    _, _, command, _ = notes.until(1, leader)
    guard = int(re.findall(r"^PPid:\s*(\d+)", Path(f"/proc/{command}/status").read_text(), re.MULTILINE)[0])
    wait_until(lambda: Path(f"/proc/{guard}/task/{guard}/children").read_text().split() == [str(command)])
    assert alive(command)
    leader.send(signal.SIGTERM)
    assert leader.wait() == 128 + signal.SIGTERM


def a_stop(workplace: Workplace, notes: Notes, inherited: str) -> None:
    leader = run(workplace, inherited, STAYS)
    notes.until(1, leader)
    stop = ("job", "stop", "orders", "--timeout", f"{PATIENCE_S:g}")
    assert (started(workplace, inherited, *stop).wait(), leader.wait()) == (0, 0)
    assert state(workplace)[2] == ["status=FINISHED"]
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]


Holds = Callable[[Workplace, Notes, str], None]
HOLDS: Mapping[str, Holds] = {
    each.__name__: each for each in (a_failure, a_success, a_signal, a_probe, an_orphan, a_stop)
}
GATE = {(CHILD, "a_failure"), (BLOCKED, "a_signal")}
"""The two that are tests of their own, so that they are in the gate."""

GRID = [(each, what) for each in PARENTS if each != REMOVED for what in HOLDS if (each, what) not in GATE]


def test_a_command_that_fails_has_failed_though_the_parent_ignores_its_children(
    workplace: Workplace, notes: Notes
) -> None:
    a_failure(workplace, notes, CHILD)


def test_term_ends_it_in_order_though_all_signals_were_blocked(workplace: Workplace, notes: Notes) -> None:
    a_signal(workplace, notes, BLOCKED)


@pytest.mark.parametrize(("inherited", "what"), GRID)
def test_grid_it_is_as_without(workplace: Workplace, notes: Notes, inherited: str, what: str) -> None:
    HOLDS[what](workplace, notes, inherited)


@pytest.mark.parametrize("inherited", PARENTS)
@pytest.mark.parametrize("verb", ["daemon", "agent"])
def test_grid_daemon_and_agent_start_and_end(workplace: Workplace, verb: str, inherited: str) -> None:
    program = started(workplace, inherited, "host", verb, "orders", XDG_CACHE_HOME=str(workplace.directory))
    wait_until(lambda: handles(program.pid, signal.SIGTERM), what=f"it serves; it said {program.said}")
    program.send(signal.SIGTERM)
    assert program.wait() == 0, program.said
    assert "Traceback" not in program.said


def handles(pid: int, number: int) -> bool:
    caught = re.findall(r"^SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught[0], 16) >> (number - 1) & 1)


def test_grid_a_working_directory_that_is_gone_is_one_sentence(workplace: Workplace, notes: Notes) -> None:
    refused = run(workplace, REMOVED, STAYS)
    assert refused.wait() == 2
    last = refused.said.splitlines()[-1]
    assert last == "ha: The working directory is gone: `cd` into one that is there, and start again."
    assert not notes.all()


def test_grid_a_job_goes_on_when_its_working_directory_goes(workplace: Workplace, notes: Notes) -> None:
    """As with a shell: the files of a release that is replaced. A verb asks for none."""
    place = workplace.work / "release"
    place.mkdir()
    command = [*HA, "run", "orders", "--adopt-within", "5", "--", sys.executable, "-c"]
    command.append(STAYS.replace('"notes"', f'"{notes.file}"'))
    leader = workplace.start(
        sys.executable, "-c", f"import os, sys\nos.chdir({str(place)!r})\nos.execv(sys.executable, {command!r})"
    )
    notes.until(1, leader)
    place.rmdir()
    restart = ("job", "restart", "orders", "--timeout", f"{PATIENCE_S:g}")
    assert started(workplace, REMOVED, *restart).wait() == 0
    notes.until(3, leader)
    leader.send(signal.SIGTERM)
    assert leader.wait() == 128 + signal.SIGTERM, leader.said


TELLS = NOTES + "told = [name for name in os.environ if name.startswith(('NOTIFY', 'WATCHDOG'))]\nnote(told)"


def test_a_command_does_not_speak_for_the_unit_of_its_sidecar(workplace: Workplace, notes: Notes) -> None:
    told = {"NOTIFY_SOCKET": str(workplace.directory / "none"), "WATCHDOG_USEC": "60000000"}
    leader = workplace.ha("run", "orders", "--", sys.executable, "-c", TELLS, **told)
    assert notes.until(1, leader)[1] == []
    assert leader.wait() == 0
    assert "systemd is not told 'READY=1'" in leader.said


SIGNALS = NOTES + (
    "status = open('/proc/self/status').read().splitlines()\n"
    "note({each[:6]: int(each[8:], 16) for each in status if each.startswith(('SigBlk', 'SigIgn'))})"
)
EVERYTHING = (
    "[signal.signal(each, signal.SIG_IGN) for each in signal.valid_signals() - {9, 19}]\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
)


def test_a_command_has_the_signals_that_a_shell_would_give_it(
    workplace: Workplace, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARENTS, "everything", EVERYTHING)
    leader = run(workplace, "everything", SIGNALS)
    by_python = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    ours = sum(
        1 << each - 1 for each in signal.valid_signals()
    )  # two more are the C library's, which lets none set them
    assert {name: mask & ours for name, mask in notes.until(1, leader)[1].items()} == {"SigBlk": 0, "SigIgn": by_python}
    assert leader.wait() == 0
