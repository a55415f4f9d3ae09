"""Nothing in tests and benchmarks waits without end."""

import ast
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import hangs
from tests.limits import at_most, joined, killed

ROOT = Path(__file__).parents[2]
AS_PEOPLE_WRITE_THEM = ROOT / "tests/system/zoo/programs"
MEANT_TO_HANG = ROOT / "tests" / "system" / "gate" / "canaries"
SOURCES = [
    path
    for folder in ("tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {AS_PEOPLE_WRITE_THEM, MEANT_TO_HANG} & {*path.parents}
]
RULES: dict[hangs.Rule, dict[str, str]] = {
    hangs.joins: {},
    hangs.waits: {},
    hangs.barriers: {},
    hangs.runs: {"tests/system/fuzz/__main__.py": "it fuzzes for as long as it was told to, on the command line"},
    hangs.blocks: {},
    hangs.forks: {},
    hangs.durations: {},
    hangs.ports: {
        "tests/unit/ha/jobmaster/test_caller.py": "it keeps the port, on which nobody listens",
        "tests/unit/ha/sandbox/test_ports.py": "it keeps the port, on which it listens later",
        "tests/unit/ha/sidecar/test_probes.py": "it keeps the port, on which nobody listens",
        "tests/unit/store/test_remote_errors.py": "it keeps the port, on which nobody listens",
    },
}
"""What is refused, but for some files, with the reasons."""

WORDS = (
    ".join()",
    "timeout=None",
    ".wait(",
    "communicate(",
    "Barrier(",
    "subprocess",
    "Popen",
    "Pool",
    "multiprocessing",
    ".bind((",
    "monotonic",
    "perf_counter",
    "now()",
)
"""What breaks a rule has one of them."""

EXAMPLES: dict[hangs.Rule, tuple[list[str], list[str]]] = {
    hangs.joins: (
        ["thread.join()", "thread.join(timeout=None)", "Thread(target=f).join()"],
        ["thread.join(5)", "thread.join(timeout=5)", "', '.join(names)"],
    ),
    hangs.waits: (
        [
            "def f():\n    child = Popen(a)\n    child.wait()",
            "def f(child: 'subprocess.Popen[str]'): child.wait()",
            "def f() -> Popen[str]: ...\nf().wait()",
            "def f():\n    with killed(subprocess.Popen(a)) as child:\n        child.wait()",
            "def f():\n    a, b = 1, threading.Event()\n    b.wait()",
            "threading.Event().wait()",
            "self._ended = Event()\nself._ended.wait(timeout=None)",
            "self.process.wait()",
            "child.communicate()",
            "child.communicate(b'')",
        ],
        [
            "process.wait(5)",
            "def f():\n    child = Popen(a)\n    child.wait(timeout=5)",
            "def f():\n    child = Popen(a)\ndef g(child):\n    child.wait()",  # a helper's, with a limit of its own
            "program.wait()",
            "child.communicate(timeout=5)",
            "self._event = Event()\nasync def f():\n    await self._event.wait()",
        ],
    ),
    hangs.barriers: (["threading.Barrier(2)"], ["threading.Barrier(2, timeout=5)", "Barrier(2, None, 5)"]),
    hangs.runs: (
        ["subprocess.run(a)", "subprocess.check_output(a, text=True)", "from subprocess import run\nrun(a)"],
        ["subprocess.run(a, timeout=5)", "subprocess.run(a, **options)", "simulation.run(a)", "run(a)"],
    ),
    hangs.blocks: (
        [
            "with subprocess.Popen(a) as child:\n    child.kill()",
            "with log, Popen(a):\n    f()",
            "stack.enter_context(subprocess.Popen(a))",
            "def start() -> 'subprocess.Popen[str]': ...\nwith start() as child: ...",
            "with Popen(a) as child:\n    try: f()\n    finally: child.terminate()",
        ],
        [
            "with killed(subprocess.Popen(a)) as child: ...",
            "with Popen(a) as child:\n    try: f()\n    finally: child.kill()",
            "def start() -> Iterator[subprocess.Popen[str]]: ...\nwith start() as child: ...",
        ],
    ),
    hangs.forks: (
        [
            "ProcessPoolExecutor(2)",
            "ProcessPoolExecutor(2, mp_context=get_context('fork'))",
            "multiprocessing.Pool(2)",
            "from multiprocessing import Process\nProcess(target=f)",
        ],
        ["ProcessPoolExecutor(2, mp_context=get_context('spawn'))", "Process(target=f)", "ThreadPoolExecutor(2)"],
    ),
    hangs.ports: (
        ["made.bind(('127.0.0.1', 0))"],
        ["made.bind(('127.0.0.1', port))", "made.bind(path)", "create_server(('127.0.0.1', 0))"],
    ),
    hangs.durations: (
        [
            "def test_a():\n    assert now() - began < 3",
            "def test_a():\n    assert 1 <= time.monotonic() - began <= 3",
            "def test_a():\n    assert 3 > perf_counter() - began",
            "def test_a():\n    took = time.time() - began\n    assert took < 3, 'slow'",
        ],
        [
            "def test_a():\n    assert now() - began > 3",
            "def test_a():\n    assert world.now() - began < 3",
            "def test_a():\n    assert 0.2 <= now() - began < PATIENCE_S / 2",
            "@pytest.mark.timed\ndef test_a():\n    assert now() - began < 3",
            "pytestmark = [pytest.mark.timed]\ndef test_a():\n    assert now() - began < 3",
            "def wait():\n    while now() - began < 3: ...",
        ],
    ),
}

STAYS = [sys.executable, "-c", "import signal; print('here', flush=True); signal.pause()"]


def stays() -> "subprocess.Popen[str]":
    return subprocess.Popen(STAYS, stdout=subprocess.PIPE, text=True)


@pytest.mark.programs
def test_a_process_ends_with_its_block_whatever_happens_in_it() -> None:
    process = stays()
    with pytest.raises(ZeroDivisionError), killed(process):
        raise ZeroDivisionError
    assert process.returncode == -9


@pytest.mark.programs
def test_what_waits_for_a_process_goes_on_when_that_hangs() -> None:
    with killed(stays(), limit_s=2) as process:
        assert process.stdout is not None
        assert process.stdout.read() in {"here\n", ""}  # without end, but for the kill
        assert process.wait(60) == -9


def test_a_block_that_ends_in_time_is_left_alone() -> None:
    ended, threads = threading.Event(), threading.active_count()
    with at_most(3600, ended.set):
        pass
    assert not ended.is_set()
    assert threading.active_count() == threads


def test_a_thread_that_hangs_is_named() -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait, args=(60,), name="slow one")
    thread.start()
    with pytest.raises(AssertionError, match="The thread slow one hangs"):
        joined(thread, limit_s=0.01)
    go_on.set()
    joined(thread)


def named(rule: hangs.Rule) -> str:
    return rule.__name__


@pytest.mark.parametrize("rule", EXAMPLES, ids=named)
def test_a_rule_finds_what_it_is_for_and_nothing_else(rule: hangs.Rule) -> None:
    bad, good = EXAMPLES[rule]
    for source in bad:
        assert list(rule(ast.parse(source))), source
    for source in good:
        assert not list(rule(ast.parse(source))), source


@pytest.fixture(scope="module")
def found() -> dict[hangs.Rule, dict[str, list[int]]]:
    """The lines that break each rule, by the file."""
    lines: dict[hangs.Rule, dict[str, list[int]]] = {rule: {} for rule in RULES}
    for path in SOURCES:
        source = path.read_text()
        if not any(word in source for word in WORDS):  # the trees of all files take ten seconds
            continue
        tree = ast.parse(source)
        for rule, files in lines.items():
            if broken := sorted(rule(tree)):
                files[path.relative_to(ROOT).as_posix()] = broken
    return lines


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_no_test_and_no_benchmark_waits_without_end(
    rule: hangs.Rule, found: dict[hangs.Rule, dict[str, list[int]]]
) -> None:
    allowed = RULES[rule]
    assert not {path: lines for path, lines in found[rule].items() if path not in allowed}, rule.__doc__
    assert not [path for path in allowed if path not in found[rule]], "what needs no permission has none"
