"""``ha lab check``: good, bad and damaged histories; the exit code, and a sentence for each violation."""

from pathlib import Path

import pytest

from ha.history.checker import GUARANTEES
from ha.history.events import Believed, Ended, Event, Granted, LookedUp, Published, Stored, encode
from tests.unit.ha.command_line import CommandLine

SESSIONS = [f"{letter * 8}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for letter in "abc"]
EDITS = """<?xml version="1.0" encoding="UTF-8"?>
<EDITS><RECORD><OPCODE>OP_RENAME</OPCODE><DATA><TXID>1</TXID><SRC>/ha/orders/{source}</SRC><DST>/ha/orders/{target}</DST>
<TIMESTAMP>1795235671101</TIMESTAMP></DATA></RECORD></EDITS>
"""

pytestmark = pytest.mark.usefixtures("quick")


def leadership(number: int, at: float, *, lasts: float = 2.0, job: str = "orders") -> list[Event]:
    name, session_id = "abc"[number - 1], SESSIONS[number - 1]
    return [
        Believed(at, job, name, at + lasts, at + lasts),
        Granted(at, job, name, number, session_id, "expired"),
        Published(at + 0.1, job, name, number, session_id, {"rest": f"{name}:1"}),
        Believed(at + lasts / 2, job, name, None, None),
    ]


def told(number: int, at: float) -> LookedUp:
    endpoints = {"rest": f"{'abc'[number - 1]}:1"}
    return LookedUp(at, "orders", at + 0.1, 2.0, "r", "leader", number, SESSIONS[number - 1], endpoints, "hdfs")


CLEAN: list[Event] = [
    *leadership(1, 100.0), told(1, 100.5), Ended(102.0, "", "a"), *leadership(2, 103.0), told(2, 103.5),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "history"
    made.mkdir()
    return made


def write(folder: Path, *events: Event, name: str = "a") -> None:
    (folder / f"{name}.jsonl").write_bytes(b"".join(map(encode, events)))


def test_a_clean_history(folder: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN[:4], name="a")
    write(folder, *CLEAN[4:], name="b")
    said = cli("lab check", folder)
    assert said.err == ""
    output = said.out
    assert "11 events in 4.0 s: Believed 4, Ended 1, Granted 2, LookedUp 2, Published 2." in output
    assert "orders: grants 2, contenders 2, readers 1, lookups 2, changes 0." in output
    assert "broken" not in output
    for guarantee in GUARANTEES:
        line = next(line for line in output.splitlines() if line.strip().startswith(guarantee))
        assert ("kept" if guarantee in {"S1", "S3", "R1", "R2"} else "not seen") in line


def test_a_history_that_breaks_promises(folder: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN, *leadership(3, 103.5), told(2, 105.0), told(1, 106.0))
    output = cli("lab check", folder, code=1).out
    assert "S1 is broken at 103.500: b and c both believed to lead" in output
    assert "R1 is broken at 106.100: r was told epoch 2, and later 1." in output
    assert "  S1  broken 2 times" in output


def test_json(folder: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN, told(1, 106.0))
    found = cli("lab check", folder, "--json", code=1).json
    assert (found["events"], found["kinds"]["LookedUp"], found["seconds"]) == (12, 3, 6.0)
    assert found["jobs"] == {"orders": {"grants": 2, "contenders": 2, "readers": 1, "lookups": 3, "changes": 0}}
    assert found["checked"]["S1"] == 4
    assert [each["guarantee"] for each in found["violations"]] == ["R1"]
    assert found["violations"][0]["at"] == pytest.approx(106.1)


def test_one_job_of_two(folder: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN, *leadership(1, 100.0, job="bills"), *leadership(2, 100.5, job="bills"))
    cli("lab check", folder, code=1)
    cli("lab check", folder, "--job", "bills", code=1)
    cli("lab check", folder, "--job", "orders")


def test_what_a_killed_process_left_half_written(folder: Path, cli: CommandLine) -> None:
    lines = b"".join(map(encode, CLEAN))
    (folder / "a.jsonl").write_bytes(lines[:-20])
    assert cli("lab check", folder, "--json").json["events"] == len(CLEAN) - 1


def test_the_timeline(folder: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN)
    output = cli("lab check", folder, "--timeline").out
    assert "   100.000  a was granted epoch 1, session aaaaaaaa (expired)" in output.splitlines()
    assert output.endswith(cli("lab check", folder).out)


def test_with_the_edit_log_of_the_namenode(folder: Path, tmp_path: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN)
    names = [f"{epoch:010d}-{session_id}" for epoch, session_id in enumerate(SESSIONS)]
    edits = tmp_path / "edits.xml"
    edits.write_text(EDITS.format(source=names[0], target=names[1]))
    arguments = (folder, "--edits", edits, "--files", "hdfs://nn:8020/ha", "--json")
    found = cli("lab check", *arguments, code=None).json
    assert found["kinds"]["Stored"] == 1
    edits.write_text(EDITS.format(source=names[0], target=names[2]))
    found = cli("lab check", *arguments, code=None).json
    assert "S3" in {each["guarantee"] for each in found["violations"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "There are no events in"),
        (encode(Ended(1.0, "", "a")), "There are no events in"),
        (b"{}\n", "holds no history: Not an event of a history: b'{}"),
        (b"\xff\xfe\n", "holds no history: Not an event"),
        (encode(Stored(1.0, "orders", "make", "x"))[:-5], "There are no events in"),
    ],
)
def test_nothing_to_check(text: bytes, sentence: str, folder: Path, cli: CommandLine) -> None:
    (folder / "a.jsonl").write_bytes(text)
    said = cli("lab check", folder, code=2)
    assert said.out == ""
    assert sentence in said.err


def test_wrong_usage(folder: Path, tmp_path: Path, cli: CommandLine) -> None:
    write(folder, *CLEAN)
    (folder.parent / "unreadable" / "b.jsonl").mkdir(parents=True)
    for arguments, sentence in (
        ((), "Missing argument"),
        ((tmp_path / "none",), "does not exist"),
        ((folder / "a.jsonl",), "is a file"),
        ((folder, "--job", "bills"), "There are no events of job 'bills' in"),
        ((folder, "--edits", folder / "a.jsonl"), "That is not an edit log in XML"),
        ((folder.parent / "unreadable",), "b.jsonl cannot be read: Is a directory."),
    ):
        assert sentence in cli("lab check", *arguments, code=2).err
