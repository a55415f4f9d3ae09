"""The sidecar corrects the paths in the checkpoints of a program that does not know of it."""

import json

from ha.rewind.plan import Plan, encoded
from store.local import LocalFiles
from tests.unit.ha.noting import ENDS, NOTES, Notes, run, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

METADATA = "spark/daily/state/0/_metadata/v2/0"
SCHEMA = "spark/daily/state/0/_stateSchema/default/0_a1"

LOOKS = (
    NOTES
    + f"""
from pathlib import Path
from urllib.parse import urlsplit
home = os.environ["HA_LEADER_DIRECTORY"]
content = Path(urlsplit(home).path, "{METADATA}").read_text().partition(chr(10))[2]
(path,) = json.loads(content)["stateStoreInfo"][0]["stateSchemaFilePaths"]
note(path.removeprefix(home))
"""
)


def write_metadata(workplace: Workplace, content: str) -> None:
    files, home = LocalFiles(workplace.jobs), f"orders/{state(workplace)[0].name}"
    parts = METADATA.split("/")
    for end in range(2, len(parts)):
        files.make_directory(f"{home}/{'/'.join(parts[:end])}")
    files.write(f"{home}/{METADATA}", f"v2\n{content}".encode())


def test_what_spark_has_noted_of_a_checkpoint_s_place_follows_before_the_command_starts(
    workplace: Workplace, notes: Notes
) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    store = {"storeName": "default", "stateSchemaFilePaths": [f"hdfs://elsewhere/ha/orders/{SCHEMA}"]}
    write_metadata(workplace, json.dumps({"stateStoreInfo": [store]}))
    looked = run(workplace, "b", LOOKS, "--again")
    assert looked.wait() == 0, looked.said
    assert notes.all()[-1][1] == f"/{SCHEMA}"


def test_a_rewind_that_was_decided_is_completed_before_the_command_starts(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    files, home = LocalFiles(workplace.jobs), f"orders/{state(workplace)[0].name}"
    for folder in ("spark/daily", "rewinding", "rewinding/daily", "rewinding/daily/decided"):
        files.make_directory(f"{home}/{folder}")
    files.make_directory(f"{home}/rewinding/daily/decided/tree")
    files.write(f"{home}/spark/daily/old", b"")
    files.write(f"{home}/rewinding/daily/decided/tree/new", b"")
    files.write(f"{home}/rewinding/daily/decided/plan", encoded(Plan("daily", 7, "0123abcd", 1, 1, [])))
    looks = NOTES + "note(os.listdir(os.environ['HA_LEADER_DIRECTORY'].removeprefix('file://') + '/spark/daily'))"
    looked = run(workplace, "b", looks, "--again")
    assert looked.wait() == 0, looked.said
    assert "query daily is put back to batch 7" in looked.said
    assert notes.all()[-1][1] == ["new"]
    present = f"orders/{state(workplace)[0].name}"
    trashed = {each.name for each in files.list(f"{present}/trash/0123abcd/rewound=daily")}
    assert trashed == {"checkpoint", "plan"}


def test_a_command_is_started_also_if_that_cannot_be_read(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    write_metadata(workplace, "[]")
    again = run(workplace, "b", ENDS, "--again")
    assert again.wait() == 0
    assert "may not find its schema" in again.said
    assert len(notes.all()) == 2


def test_how_a_command_failed_is_shown_while_it_is_started_again(workplace: Workplace, notes: Notes) -> None:
    again = {"HA_RESTART_STRATEGY_TYPE": "fixed-delay", "HA_RESTART_STRATEGY_FIXED_DELAY_DELAY": "0"}
    source = NOTES + "note('runs')\nif len(open('notes').readlines()) < 2: sys.exit(3)\nstay()"
    program = run(workplace, "a", source, **again)
    notes.until(2, program)

    def shown() -> list[list[object]]:
        told = workplace.ha("exceptions", "orders", "--json")
        assert told.wait() == 0
        return [[each["epoch"], each["class"]] for each in json.loads(told.output.read_text())]

    wait_until(lambda: shown() == [[1, "exit-3"]], what="the failure")
