"""The command line: its exit codes, and one sentence instead of a traceback for every mistake."""

import json
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ha.cli import exit_code
from leader.layout import tree as job
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.clock import now
from store.local import LocalFiles
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

SESSION = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
BAD_JOBS = [
    "",
    ".",
    "..",
    "../orders",
    "a/b",
    "/",
    "a b",
    "a\n",
    "a\x1b[0m",
    "\x7f",
    "ä",
    "\u0663",
    "-",
    "_a",
    "a" * 129,
]

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(autouse=True)
def logging_is_put_back() -> Iterator[None]:
    """Restore logging: `ha run` and `ha daemon` configure it for the whole process, which here is pytest's."""
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in ("", "ha", "kazoo")}
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


class Said:
    """The command line, run in this process: its exit code and output."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        try:
            self.code: object = exit_code(list(arguments))
        except SystemExit as ended:
            self.code = ended.code
        printed = capsys.readouterr()
        self.output, self.errors = printed.out, printed.err
        assert "Traceback" not in self.errors


@pytest.fixture
def led(quick: Path) -> Path:
    """A job with a leader for the next hour, a history and a checkpoint."""
    files = LocalFiles(quick, durable=False)
    job.create(files, "orders")
    directory = LeaderDirectory(1, SESSION)
    files.rename(f"orders/{LeaderDirectory(0, NOBODY).name}", f"orders/{directory.name}")
    home = f"orders/{directory.name}"
    (free,) = [entry.name for entry in files.list(f"{home}/record")]
    held = Lease(1, Mode.HDFS, 3_600_000, SESSION, "", "a")
    files.rename(f"{home}/record/{free}", f"{home}/record/{held.name}")
    for entry in (
        f"record/endpoint~{1:010d}~1~1~rest=a_3a1",
        f"history/{directory.name}~released~a",
        "checkpoints/daily=3~1~1~~~~~",
        "checkpoints/daily=4~2~1~850~7~20~4096~orders_3d12",
    ):
        files.make_directory(f"{home}/{entry}")
    return quick


# --- what works


def test_leader(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "leader", "orders")
    assert (said.code, said.output) == (0, f"orders: epoch 1 {SESSION} rest=a:1 (hdfs, verified)\n")
    fields = json.loads(Said(capsys, "leader", "orders", "--json").output)
    assert (fields["epoch"], fields["endpoints"], fields["source"]) == (1, {"rest": "a:1"}, "hdfs")
    assert led.exists()


def test_flags_come_before_the_environment(
    led: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/nowhere")
    assert Said(capsys, "leader", "orders", "--files", led.as_uri()).code == 0


@pytest.mark.parametrize(
    ("stored", "held", "shown"),
    [
        ("CREATED", False, "CREATED"),
        ("RUNNING", True, "RUNNING"),
        ("RUNNING", False, "SUSPENDED"),
        ("RESTARTING", False, "SUSPENDED"),
        ("FINISHED", False, "FINISHED"),
        ("FAILED", False, "FAILED"),
    ],
)
def test_what_runs_is_suspended_while_nobody_leads_it(
    led: Path, capsys: pytest.CaptureFixture[str], stored: str, shown: str, *, held: bool
) -> None:
    files, home = LocalFiles(led, durable=False), f"orders/{LeaderDirectory(1, SESSION).name}"
    files.rename(f"{home}/status=CREATED", f"{home}/status={stored}~2")
    if not held:
        lease = Lease(1, Mode.HDFS, 3_600_000, SESSION, "", "a")
        released = replace(lease, sequence=2, mode=Mode.RELEASED, ttl_ms=0)
        files.rename(f"{home}/record/{lease.name}", f"{home}/record/{released.name}")
    (row,) = json.loads(Said(capsys, "list", "--json").output)
    assert row["state"] == shown


def test_list_history_and_checkpoint(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(Said(capsys, "list", "--json").output)
    assert rows[0].pop("checkpoint_at").endswith("Z")
    assert rows[0].pop("rows_per_second") == pytest.approx(7 / 0.85)
    assert [rows[0].pop(name) for name in ("paused", "next_try", "barred")] == [None, None, []]
    assert rows == [
        {"job": "orders", "state": "CREATED", "epoch": 1, "lease": "hdfs", "holder": "a", "contenders": None}
    ]
    assert "orders" in Said(capsys, "list").output
    (history,) = json.loads(Said(capsys, "history", "orders", "--json").output)
    assert (history["epoch"], history["reason"], history["contender"]) == (1, "released", "a")
    state = json.loads(Said(capsys, "checkpoint", "orders", "--json").output)
    assert state["queries"]["daily"].pop("rows_per_second") == pytest.approx(7 / 0.85)
    known = {"duration_ms": 850, "rows": 7, "state_rows": 20, "state_bytes": 4096, "offsets": "orders=12"}
    assert state == {"job": "orders", "epoch": 1, "next_id": 1, "queries": {"daily": {"batch": 4, "id": 2, **known}}}
    assert "daily: batch 4, checkpoint 2" in Said(capsys, "checkpoint", "orders").output
    assert led.exists()


def test_the_checkpoints_that_are_kept(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older, newer = json.loads(Said(capsys, "checkpoints", "orders", "--json").output)
    assert (older["query"], older["batch"], older["id"], older["rows"], older["offsets"]) == ("daily", 3, 1, None, None)
    assert (newer["query"], newer["batch"], newer["id"], newer["rows"]) == ("daily", 4, 2, 7)
    title, *rows = (line.split() for line in Said(capsys, "checkpoints", "orders").output.splitlines())
    assert title[:3] == ["QUERY", "BATCH", "ID"]
    assert rows == [
        ["daily", "3", "1", "-", "-", "-", "-", "-", "-"],
        ["daily", "4", "2", "850", "7", "8.2", "20", "4096", "orders=12"],
    ]
    home = f"orders/{LeaderDirectory(1, SESSION).name}/checkpoints"
    LocalFiles(led, durable=False).make_directory(f"{home}/daily=5")
    said = Said(capsys, "checkpoints", "orders")
    assert (said.code, said.output) == (1, "")
    assert said.errors.startswith("ha: 'daily=5' among the checkpoints of job 'orders' cannot be read")


def test_clean_and_trash(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, home = LocalFiles(led, durable=False), f"orders/{LeaderDirectory(1, SESSION).name}"
    assert Said(capsys, "trash", "list", "orders").output == ""
    said = Said(capsys, "clean", "orders")
    assert (said.code, said.output) == (1, "")
    assert said.errors == "ha: Job 'orders' is CREATED: it can be cleaned up once it has ended for good.\n"
    files.rename(f"{home}/status=CREATED", f"{home}/status=FINISHED~2")
    assert Said(capsys, "trash", "restore", "orders").code == 1
    said = Said(capsys, "clean", "orders")
    assert said.code == 0
    assert said.output.startswith("orders: cleaned up (")
    assert "; `ha trash restore orders` undoes it" in said.output
    (row,) = json.loads(Said(capsys, "trash", "list", "orders", "--json").output)
    assert (row["folders"], row["restorable"]) == (["spark"], True)
    assert row["name"] in Said(capsys, "trash", "list", "orders").output
    assert Said(capsys, "trash", "restore", "orders").output == f"orders: restored ({row['name']})\n"
    assert "spark" in [entry.name for entry in files.list(home)]
    assert Said(capsys, "clean", "orders").code == 0
    assert Said(capsys, "trash", "empty", "orders").output.startswith("orders: deleted ")
    assert Said(capsys, "trash", "empty", "orders").output == "orders: deleted nothing\n"
    said = Said(capsys, "trash", "restore", "orders")
    assert (said.code, "does not hold" in said.errors) == (1, True)


def test_where_nobody_has_been_there_are_no_jobs(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Said(capsys, "list", "--json").output == "[]\n"
    assert not quick.exists(), "looking makes nothing"


@pytest.mark.parametrize(
    "command",
    ["run", "daemon", "agent", "leader", "watch", "list", "history", "resign", "switchover", "check", "clean", "trash"],
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, command, "--help")
    assert (said.code, said.errors) == (0, "")
    assert said.output.startswith(f"Usage: ha {command}")


# --- 1: it failed


def test_a_leader_that_does_not_hand_over(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "resign", "orders", "--timeout", "0.2")
    assert said.code == 1
    assert "orders: the leader of epoch 1 is asked to hand over." in said.errors
    assert "ha: No contender has taken over job 'orders' in 0.2 s. The request stays" in said.errors
    said = Said(capsys, "switchover", "orders", "--to", "b", "--timeout", "0.2")
    assert said.code == 1
    assert led.exists()


# --- 2: wrong usage


@pytest.mark.parametrize("name", BAD_JOBS)
@pytest.mark.parametrize(
    "command",
    ["leader", "watch", "history", "resign", "switchover", "checkpoint", "checkpoints", "daemon", "agent", "clean"],
)
def test_a_bad_job(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, command, "--", name)
    assert said.code == 2
    assert said.errors.startswith("ha: ")
    assert f"{name!r} is not a job name: use 1 to 128 letters" in said.errors
    assert said.errors.count("\n") == 1, "one sentence, and no control character of the name's"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\x1b", "ä", "a" * 129])
def test_a_bad_job_to_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "run", "--", name, "true")
    assert said.code == 2
    assert "is not a job name" in said.errors


USAGE = [
    (["leader"], "Missing argument 'JOB'"),
    (["leader", "orders", "more"], "unexpected extra argument"),
    (["leader", "orders", "--timeout", "soon"], "'soon' is not a valid float range"),
    (["leader", "orders", "--timeout", "0"], "0.0 is not in the range"),
    (["leader", "orders", "--timeout", "-1"], "-1.0 is not in the range"),
    (["leader", "orders", "--timeout", "nan"], "not in the range"),
    (["leader", "orders", "--timeout", "inf"], "not in the range"),
    (["leader", "orders", "--timeout", "1e300"], "not in the range"),
    (["resign", "orders", "--timeout", "nan"], "not in the range"),
    (["checkpoint", "orders", "--timeout", "inf"], "not in the range"),
    (["leeder", "orders"], "There is no command 'leeder'. Did you mean `ha leader`?"),
    (["run", "orders", "--", "no-such-command"], "There is no command 'no-such-command': check its path."),
    (["run", "orders", "--", "/"], "There is no command '/'"),
    (["run", "orders", "--", ""], "There is no command ''"),
    (["run", "orders", "--endpoint", "rest", "--", "true"], "'rest' is not NAME=ADDRESS"),
    (["run", "orders", "--endpoint", "=x", "--", "true"], "'' is not a name of an endpoint"),
    (["run", "orders", "--endpoint", "rest=", "--", "true"], "The address of endpoint 'rest' is ''"),
    (["run", "orders", "--endpoint", "a b=x", "--", "true"], "'a b' is not a name of an endpoint"),
    (["run", "orders", "--endpoint", f"rest={'x' * 300}", "--", "true"], "'rest' is too long"),
    (["run", "orders", "--endpoint", "r=1", "--endpoint", "r=2", "--", "true"], "endpoint 'r' is given twice"),
    (["run", "orders", "--contender", "a b", "--", "true"], "'a b' is not a name of a contender"),
    (["run", "orders", "--log-level", "loud", "--", "true"], "'loud' is not one of"),
    (["run", "orders", "--listen", "8300", "--", "true"], "it must be host:port"),
    (["run", "orders", "--listen", "127.0.0.1:port", "--", "true"], "it must be host:port"),
    (["run", "orders", "--listen", "127.0.0.1:70000", "--", "true"], "it must be host:port"),
    (["run", "orders", "--listen", "256.256.256.256:1", "--", "true"], "cannot listen on 256.256.256.256:1"),
    (["run", "orders", "--listen", f"{'x' * 70}:1", "--", "true"], "listen"),
    (["daemon"], "Missing argument 'JOB...'"),
    (["daemon", "orders", "payments", "orders"], "'orders'"),
    (["switchover", "orders", "--to", "a b"], "a contender"),
    (["list", "--files", "orders"], "'orders' has no known scheme; begin it with hdfs://"),
    (["list", "--files", "s3://bucket/x"], "'s3://bucket/x' has no known scheme"),
    (["list", "--files", "hdfs://"], "names no host"),
    (["list", "--files", "hdfs://nn:port/x"], "is not a URI"),
    (["list", "--files", "file:///"], "is the whole file system"),
    (["list", "--files", "file://host/x"], "names a host"),
    (["list", "--zookeeper", "zk:port"], "zookeeper:"),
    (["list", "--zookeeper", "zk:99999"], "zookeeper:"),
    (["list", "--zookeeper", ","], "zookeeper:"),
    (["list", "--zookeeper", "zk:2181/a//b"], "zookeeper:"),
]


@pytest.mark.parametrize(("arguments", "sentence"), USAGE, ids=[" ".join(each[0])[:60] for each in USAGE])
def test_wrong_usage(arguments: list[str], sentence: str, led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, *arguments)
    assert said.code == 2, said.errors
    assert sentence in said.errors
    assert said.output == ""
    assert led.exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("short_ttl = 'soon'", "ha: short_ttl in ha.toml is 'soon': it must be a number"),
        ("shrt_ttl = 1", "ha: 'shrt_ttl' in ha.toml is not a setting: did you mean 'short_ttl'?"),
        ("short_ttl", "ha: ha.toml is not valid TOML"),
        ("long_ttl = 1", "ha: long_ttl (1 s) and short_ttl (2 s) clash"),
    ],
)
def test_wrong_settings(
    text: str, sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HA_LONG_TTL")
    Path("ha.toml").write_text(text)
    said = Said(capsys, "list")
    assert said.code == 2
    assert said.errors.startswith(sentence)


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "command", [["run", "orders", "--", "true"], ["daemon", "orders"], ["agent"]], ids=["run", "daemon", "agent"]
)
def test_a_port_that_is_taken(command: list[str], taken: str, workplace: Workplace) -> None:
    program = workplace.ha(command[0], "--listen", taken, *command[1:])
    assert program.wait() == 2
    names_its_stores, *_, refused = program.said.splitlines()
    assert "The jobs are in" in names_its_stores
    assert refused == f"ha: The HTTP API cannot listen on {taken}: Address already in use; choose another port."


# --- 3: nobody leads


def test_no_such_job(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("leader", "history", "resign", "switchover", "checkpoint", "clean"):
        said = Said(capsys, command, "orders")
        assert said.code == 3, said.errors
        assert said.errors == f"ha: There is no job 'orders' under {quick.as_uri()}.\n"


def test_a_job_without_a_leader(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.create(LocalFiles(quick, durable=False), "orders")
    for command in ("leader", "resign", "switchover"):
        assert Said(capsys, command, "orders").code == 3


def test_a_damaged_job_is_listed_as_that(led: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = LocalFiles(led, durable=False)
    files.make_directory("payments")
    rows = json.loads(Said(capsys, "list", "--json").output)
    assert [(row["job"], row["lease"]) for row in rows] == [("orders", "hdfs"), ("payments", "damaged")]


# --- 4: no store answers


NOWHERE = ("--files", "hdfs://127.0.0.1:1/jobs", "--zookeeper", "127.0.0.1:1")


@pytest.mark.parametrize("command", ["leader", "checkpoint"])
def test_no_store_answers_within_the_time(command: str, workplace: Workplace) -> None:
    started = now()
    program = workplace.ha(command, "orders", "--timeout", "1", *NOWHERE)
    assert program.wait() == 4
    assert now() - started < 1 + 10, "one second, and what a new interpreter takes on a busy machine"
    assert program.said.startswith("ha: ")
    assert program.said.count("\n") == 1


@pytest.mark.parametrize(
    "command", [["list"], ["history", "orders"], ["resign", "orders"], ["switchover", "orders"], ["clean", "orders"]]
)
def test_an_operator_whom_no_store_answers(command: list[str], workplace: Workplace) -> None:
    program = workplace.ha(*command, *NOWHERE)
    assert program.wait() == 4
    assert program.said.startswith("ha: ")
    assert "Traceback" not in program.said


def test_a_root_that_is_a_file(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick.write_text("")
    for command in (["leader", "orders"], ["list"], ["history", "orders"]):
        said = Said(capsys, *command)
        assert said.code == 4
        assert "Not a directory" in said.errors


# --- interrupted


def test_a_watch_that_is_interrupted(workplace: Workplace) -> None:
    program = workplace.ha("watch", "orders")
    wait_until(lambda: "orders: no leader" in program.output.read_text() or program.process.poll() is not None)
    program.send(signal.SIGINT)
    assert program.wait() == 130
    assert "Traceback" not in program.said
