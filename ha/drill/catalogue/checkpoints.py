"""Checkpoints go wrong, and people go back: holes are made in one, and a bad version has counted for a while."""

import json
import re
from collections.abc import Iterable
from typing import Any

from ha.drill.asking import ASK_S, HA, check
from ha.drill.drill import Drill, Expected
from ha.drill.environment import DrillError
from ha.drill.fixture import CONTENDERS, Fixture, Setup
from ha.drill.ha_provider import HYBRID, DrillJob
from store.clock import now

QUERY = "word-count"
RESTORABLE = ("restorable", "restorable with rebuilt files")

CLIENTS = ("python", "-m", "ha.drill.clients")
VERIFY_S = 120.0

WHOLE_S = 300.0
"""Until the state has a whole version, which Spark writes after ten batches and some time."""

KINDS = {
    "the newest offsets": r"offsets/\d+",
    "the newest changes of the state": r"state/0/0/\d+_[^/]*\.changelog",
    "the newest whole version of the state": r"state/0/0/\d+_[^/]*\.zip",
    "the newest table of the state": r"state/0/0/SSTs/[^/]*\.sst",
    "the newest log of the source": r"sources/0/\d+(?:\.compact)?",
    "the id of the query": r"metadata",
}
"""Kinds of holes: of each the newest file that has such a path."""


def _stop(fixture: Fixture) -> None:
    """End all contenders, with what is below them."""
    for name, each in fixture.contenders.items():
        if name not in fixture.lost:
            fixture.lose(each, each.end)
            fixture.lost.add(name)


def _verified(fixture: Fixture) -> list[dict[str, Any]]:
    """Return what `ha verify` says of each batch; it fails if there is damage, which is no failure here."""
    name = f"verify-{now():.3f}"
    asking = fixture.beside(name, [*HA, "verify", fixture.job.name, "--json"], {"HA_HISTORY": ""})
    fixture.wait_for("what ha verify says", lambda: not asking.running, VERIFY_S)
    lines = [each for each in asking.log().splitlines() if each.startswith("[{")]
    if not lines:
        raise DrillError(f"ha verify says nothing: {asking.log()[-300:]}")
    batches: list[dict[str, Any]] = next(each for each in json.loads(lines[-1]) if each["query"] == QUERY)["batches"]
    return batches


def _newest(paths: Iterable[str], kind: str) -> str:
    """Return the newest file of a kind: numbers in names grow."""
    found = [path for path in paths if re.fullmatch(kind, path)]
    numbered = sorted(found, key=lambda path: int((re.findall(r"\d+", path.rpartition("/")[2]) or ["0"])[0]))
    return numbered[-1] if numbered else ""


def _files(fixture: Fixture) -> list[str]:
    """Return the files of all leader directories of the job."""
    place = fixture.environment
    uri = f"{place.variables()['HA_FILES']}/{fixture.job.name}"
    found: list[str] = json.loads(place.call([*CLIENTS, "files", uri], fixture.folder, ASK_S))
    return found


def _damaged(fixture: Fixture) -> None:
    fixture.wait_for(
        "a whole version of the state", lambda: any(each.endswith(".zip") for each in _files(fixture)), WHOLE_S
    )
    fixture.await_batches(2)
    place, job = fixture.environment, fixture.job
    root = place.variables()["HA_FILES"]
    with fixture.fault("both hosts are gone, and files of the checkpoint are lost, one kind after the other"):
        _stop(fixture)
        listed = _files(fixture)
        homes = sorted({path.partition(f"/spark/{QUERY}/")[0] for path in listed if f"/spark/{QUERY}/" in path})
        home = f"{homes[-1]}/spark/{QUERY}/"
        inside = [path.removeprefix(home) for path in listed if path.startswith(home)]
        sound = _verified(fixture)
        check(fixture, "no false alarm", all(each["condition"] != "damaged" for each in sound), f"{len(sound)} batches")

        def move(path: str, *, back: bool = False) -> None:
            there, hole = f"{job.name}/{home}{path}", f"holes/{job.name}/{path}"
            ends = (hole, there) if back else (there, hole)
            place.call([*CLIENTS, "rename", root, *ends], fixture.folder, ASK_S)

        missed = []
        for kind, pattern in KINDS.items():
            path = _newest(inside, pattern)
            if not path:
                missed.append(f"{kind} (there is none)")
                continue
            move(path)
            holes = {each["missing"] for each in _verified(fixture) if each["condition"] == "damaged"}
            if path not in holes:
                missed.append(f"{kind} ({path})")
            move(path, back=True)
        check(fixture, "every kind of hole is found", not missed, f"{len(KINDS)} kinds, missed: {missed or 'none'}")
        move(_newest(inside, KINDS["the newest changes of the state"]))
        batches = _verified(fixture)
        best = max((each["batch"] for each in batches if each["condition"] in RESTORABLE), default=-1)
        known = 0 <= best < batches[-1]["batch"]
        check(fixture, "it says what can be continued", known, f"batch {best}; the newest is {batches[-1]['batch']}")
        _put_back(fixture, best)
        for name in CONTENDERS:
            fixture.contend(name)
    fixture.await_batches(2)


def _put_back(fixture: Fixture, batch: int) -> None:
    command = [*HA, "rewind", fixture.job.name, QUERY, "--to", f"{batch}", "--outputs", "aside", "--yes", "--json"]
    # It leads the job, so it belongs to the history.
    said = fixture.let(f"rewind-{now():.3f}", command, VERIFY_S, {"HA_CONTENDER": "operator"})
    trash = json.loads(said.strip().splitlines()[-1])["trash"]
    check(fixture, "the query is put back", bool(trash), f"to batch {batch}; {trash or 'nothing'} is in the trash")


def _bad(job: DrillJob, name: str) -> list[str]:
    """Run a version that counts each word twice."""
    return [*HYBRID.contend(job, name), "--twice"]


def _rewind(fixture: Fixture) -> None:
    with fixture.fault("a version is deployed that counts each word twice, and is noticed after some batches"):
        _stop(fixture)
        good = max(each["batch"] for each in _verified(fixture) if each["condition"] in RESTORABLE)
        for name in CONTENDERS:
            fixture.contend(name, _bad)
        fixture.await_batches(3)
        _stop(fixture)
        _put_back(fixture, good)
        for name in CONTENDERS:
            fixture.contend(name)
    fixture.await_batches(2)


DRILLS = (
    Drill(
        "checkpoint-damaged",
        "each kind of file is lost from a checkpoint; every hole is found, and the job goes on from the newest batch "
        "that can be continued",
        "checkpoints",
        _damaged,
        Expected((1, 4)),
        setup=Setup(),
    ),
    Drill(
        "rewind-after-bad-deploy",
        "a version that counts wrongly is deployed; the query is put back to the batch before it, with its output",
        "checkpoints",
        _rewind,
        Expected((2, 6)),
        setup=Setup(),
    ),
)
