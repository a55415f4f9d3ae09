"""The command line: its exit codes, and one sentence instead of a traceback for every mistake."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.cli.commands import VERBS, app
from leader.layout import tree as job
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.local import LocalFiles
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

SESSION = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
BAD_JOBS = [
    "", ".", "..", "../orders", "a/b", "/", "a b", "a\n", "a\x1b[0m", "\x7f", "ä", "\u0663", "-", "_a", "a" * 129,
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("quick")


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


def test_leader(led: Path, cli: CommandLine) -> None:
    assert cli("job leader orders").out == f"orders: epoch 1 {SESSION} rest=a:1 (hdfs, verified)\n"
    fields = cli("job leader orders --json").json
    assert (fields["epoch"], fields["endpoints"], fields["source"]) == (1, {"rest": "a:1"}, "hdfs")
    assert led.exists()


def test_flags_come_before_the_environment(led: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/nowhere")
    cli("job leader orders --files", led.as_uri())


def test_list_history_and_checkpoint(led: Path, cli: CommandLine) -> None:
    rows = cli("job list --json").json
    assert rows[0].pop("checkpoint_at").endswith("Z")
    assert rows[0].pop("rows_per_second") == pytest.approx(7 / 0.85)
    assert [rows[0].pop(name) for name in ("paused", "next_try", "barred")] == [None, None, []]
    assert [rows[0].pop(name) for name in ("last_holder", "overdue", "since")] == [None, False, None]
    assert rows == [
        {
            "job": "orders",
            "state": "CREATED",
            "epoch": 1,
            "lease": "hdfs",
            "holder": "a",
            "contenders": None,
            "unguarded": 0,
            "repeated": 0,
            "others": [],
            "program": None,
            "last_hour": None,
        }
    ]
    assert "orders" in cli("job list").out
    (history,) = cli("job history orders --json").json
    assert (history["epoch"], history["reason"], history["contender"]) == (1, "released", "a")
    state = cli("checkpoint newest orders --json").json
    assert state["queries"]["daily"].pop("rows_per_second") == pytest.approx(7 / 0.85)
    known = {"duration_ms": 850, "rows": 7, "state_rows": 20, "state_bytes": 4096, "offsets": "orders=12"}
    assert state == {"job": "orders", "epoch": 1, "next_id": 1, "queries": {"daily": {"batch": 4, "id": 2, **known}}}
    assert "daily: batch 4, checkpoint 2" in cli("checkpoint newest orders").out
    assert led.exists()


def test_the_checkpoints_that_are_kept(led: Path, cli: CommandLine) -> None:
    older, newer = cli("checkpoint list orders --json").json
    assert (older["query"], older["batch"], older["id"], older["rows"], older["offsets"]) == ("daily", 3, 1, None, None)
    assert (newer["query"], newer["batch"], newer["id"], newer["rows"]) == ("daily", 4, 2, 7)
    title, *rows = (line.split() for line in cli("checkpoint list orders").out.splitlines())
    assert title[:3] == ["QUERY", "BATCH", "ID"]
    assert rows == [
        ["daily", "3", "1", "-", "-", "-", "-", "-", "-"],
        ["daily", "4", "2", "850", "7", "8.2", "20", "4096", "orders=12"],
    ]
    home = f"orders/{LeaderDirectory(1, SESSION).name}/checkpoints"
    LocalFiles(led, durable=False).make_directory(f"{home}/daily=5")
    said = cli("checkpoint list orders", code=1)
    assert said.out == ""
    assert said.err.startswith("ha: 'daily=5' among the checkpoints of job 'orders' cannot be read")


def test_clean_and_trash(led: Path, cli: CommandLine) -> None:
    files, home = LocalFiles(led, durable=False), f"orders/{LeaderDirectory(1, SESSION).name}"
    assert cli("trash list orders").out == ""
    said = cli("job clean orders", code=1)
    assert said.out == ""
    assert said.err == "ha: Job 'orders' is CREATED: it can be cleaned up once it has ended for good.\n"
    files.rename(f"{home}/status=CREATED", f"{home}/status=FINISHED~2")
    cli("trash restore orders", code=1)
    said = cli("job clean orders")
    assert said.out.startswith("orders: cleaned up (")
    assert "; `ha trash restore orders` undoes it" in said.out
    (row,) = cli("trash list orders --json").json
    assert (row["folders"], row["restorable"]) == (["spark"], True)
    assert row["name"] in cli("trash list orders").out
    assert cli("trash restore orders").out == f"orders: restored ({row['name']}); `ha job clean orders` undoes it\n"
    assert "spark" in [entry.name for entry in files.list(home)]
    cli("job clean orders")
    asked = cli("trash empty orders", code=2)
    assert "orders: this is deleted for good" in asked.out
    assert "without a terminal give --yes" in asked.err
    assert "\norders: deleted " in cli("trash empty orders --yes").out
    assert cli("trash empty orders --yes").out == "orders: deleted nothing\n"
    assert "does not hold" in cli("trash restore orders", code=1).err


def test_where_nobody_has_been_there_are_no_jobs(quick: Path, cli: CommandLine) -> None:
    assert cli("job list --json").out == "[]\n"
    said = f"ha: There is no job 'orders' under {quick.as_uri()}. `files` comes from HA_FILES.\n"
    assert cli("job leader orders", code=3).err == said
    assert not quick.exists(), "looking makes nothing"


@pytest.mark.parametrize("command", [*VERBS])
def test_every_command_has_help(command: str, cli: CommandLine) -> None:
    said = cli(command, "--help")
    assert said.err == ""
    assert said.out.startswith(f"Usage: ha {command}")


def test_a_switchover_to_the_leader_says_so_and_changes_nothing(led: Path, cli: CommandLine) -> None:
    (lease,) = led.glob("orders/*/record/lease~*")
    said = cli("job handover orders --to a")
    assert said.err == ""
    assert said.out == "a leads orders already, in epoch 1: nothing is changed\n"
    found = cli("job handover orders --to a --json").json
    assert found == {"job": "orders", "before": 1, "epoch": 1, "contender": "a"}
    assert lease.exists()


# --- 1: it failed


def test_a_leader_that_does_not_hand_over(led: Path, cli: CommandLine) -> None:
    said = cli("job handover orders --timeout 0.2", code=1)
    assert "orders: the leader of epoch 1 is asked to hand over." in said.err
    assert "ha: No contender has taken over job 'orders' in 0.2 s. The request stays" in said.err
    said = cli("job handover orders --to b --timeout 0.2", code=1)
    assert led.exists()


# --- 2: wrong usage


@pytest.mark.parametrize("name", BAD_JOBS)
@pytest.mark.parametrize(
    "command",
    [
        *(f"job {verb}" for verb in ("leader", "watch", "history", "handover", "clean")),
        *("checkpoint newest", "checkpoint list", "host daemon", "host agent"),
    ],
)
def test_a_bad_job(command: str, name: str, cli: CommandLine) -> None:
    said = cli(command, "--", name, code=2)
    assert said.err.startswith("ha: ")
    assert f"{name!r} is not a job name: use 1 to 128 letters" in said.err
    assert said.err.count("\n") == 1, "one sentence, and no control character of the name's"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\x1b", "ä", "a" * 129])
def test_a_bad_job_to_run(name: str, cli: CommandLine) -> None:
    assert "is not a job name" in cli("run --", name, "true", code=2).err


USAGE = [
    (["job", "leader"], "Missing argument 'JOB'"),
    (["job", "leader", "orders", "more"], "unexpected extra argument"),
    (["job", "leader", "orders", "--timeout", "soon"], "'soon' is not a valid float range"),
    (["job", "leader", "orders", "--timeout", "0"], "0.0 is not in the range"),
    (["job", "leader", "orders", "--timeout", "-1"], "-1.0 is not in the range"),
    (["job", "leader", "orders", "--timeout", "nan"], "not in the range"),
    (["job", "leader", "orders", "--timeout", "inf"], "not in the range"),
    (["job", "leader", "orders", "--timeout", "1e300"], "not in the range"),
    (["job", "handover", "orders", "--timeout", "nan"], "not in the range"),
    (["checkpoint", "newest", "orders", "--timeout", "inf"], "not in the range"),
    (["leeder", "orders"], "There is no command 'leeder'. `ha --help` lists all commands."),
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
    (["host", "daemon"], "Missing argument 'JOB...'"),
    (["host", "daemon", "orders", "payments", "orders"], "'orders'"),
    (["job", "handover", "orders", "--to", "a b"], "a contender"),
    (["job", "list", "--files", "orders"], "'orders' has no known scheme; begin it with hdfs://"),
    (["job", "list", "--files", "s3://bucket/x"], "'s3://bucket/x' has no known scheme"),
    (["job", "list", "--files", "hdfs://"], "names no host"),
    (["job", "list", "--files", "hdfs://nn:port/x"], "is not a URI"),
    (["job", "list", "--files", "file:///"], "is the whole file system"),
    (["job", "list", "--files", "file://host/x"], "names a host"),
    (["job", "list", "--zookeeper", "zk:port"], "zookeeper:"),
    (["job", "list", "--zookeeper", "zk:99999"], "zookeeper:"),
    (["job", "list", "--zookeeper", ","], "zookeeper:"),
    (["job", "list", "--zookeeper", "zk:2181/a//b"], "zookeeper:"),
]


@pytest.mark.parametrize(("arguments", "sentence"), USAGE, ids=[" ".join(each[0])[:60] for each in USAGE])
def test_wrong_usage(arguments: list[str], sentence: str, led: Path, cli: CommandLine) -> None:
    said = cli(*arguments, code=2)
    assert sentence in said.err
    assert said.out == ""
    assert led.exists()


def test_wrong_settings(cli: CommandLine) -> None:
    Path("ha.toml").write_text("shrt_ttl = 1")
    said = cli("job list", code=2).err
    assert said.startswith("ha: 'shrt_ttl' in ha.toml is not a setting: did you mean 'short_ttl'?")


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("command", "program"),
    [(["run", "orders"], ["--", "true"]), (["host", "daemon", "orders"], []), (["host", "agent"], [])],
    ids=["run", "daemon", "agent"],
)
def test_a_port_that_is_taken(command: list[str], program: list[str], taken: str, workplace: Workplace) -> None:
    served = workplace.ha(*command, "--listen", taken, *program)
    assert served.wait() == 2
    names_its_stores, *_, refused = served.said.splitlines()
    assert "The jobs are in" in names_its_stores
    assert refused == f"ha: The HTTP API cannot listen on {taken}: Address already in use; choose another port."


# --- 3: nobody leads


def test_a_job_without_a_leader(quick: Path, cli: CommandLine) -> None:
    job.create(LocalFiles(quick, durable=False), "orders")
    for command in ("leader", "handover"):
        cli(f"job {command} orders --timeout 0.2", code=3)


# --- 4: no store answers


NOWHERE = ("--files", "hdfs://127.0.0.1:1/jobs", "--zookeeper", "127.0.0.1:1")


@pytest.mark.parametrize("command", ["job leader", "checkpoint newest"])
def test_no_store_answers_within_the_time(command: str, workplace: Workplace) -> None:
    program = workplace.ha(*command.split(), "orders", "--timeout", "1", *NOWHERE)
    assert program.wait() == 4
    assert program.said.startswith("ha: ")
    assert program.said.count("\n") == 1


@pytest.mark.parametrize("command", ["job list", "job history orders", "job handover orders", "job clean orders"])
def test_an_operator_whom_no_store_answers(command: str, workplace: Workplace) -> None:
    program = workplace.ha(*command.split(), *NOWHERE)
    assert program.wait() == 4
    assert program.said.startswith("ha: ")
    assert "Traceback" not in program.said


def test_a_root_that_is_a_file(quick: Path, cli: CommandLine) -> None:
    quick.write_text("")
    for command in ("job leader orders", "job list", "job history orders"):
        assert "Not a directory" in cli(command, code=4).err


# --- interrupted


def test_a_watch_that_is_interrupted(workplace: Workplace) -> None:
    program = workplace.ha("job", "watch", "orders")
    wait_until(lambda: "orders: no leader" in program.output.read_text() or program.process.poll() is not None)
    program.send(signal.SIGINT)
    assert program.wait() == 130
    assert "Traceback" not in program.said


@pytest.mark.parametrize("given", [["--", "python", "caf\udce9"], ["--env", "PLACE=caf\udce9", "--", "python"]])
def test_bytes_that_are_no_utf8_are_told_in_one_sentence(quick: Path, cli: CommandLine, given: list[str]) -> None:
    said = cli("job submit orders --no-preflight", *given, code=2)
    assert said.err.endswith("ha: 'caf\ufffd' is not UTF-8, and cannot be stored: write it in UTF-8.\n")
    assert not quick.exists()


def test_what_a_terminal_cannot_show_is_no_fault_of_what_was_given(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printing(**_: object) -> None:
        "\u00b7".encode("ascii")

    monkeypatch.setattr(app, "main", printing)
    with pytest.raises(UnicodeEncodeError):
        cli("job list")
