"""Checkpoints go wrong, and people change them: holes are made in one, a bad version has counted, a rescale dies."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from ha.drill.asking import HA, asked, client
from ha.drill.drill import Expected, drill
from ha.drill.environment import DrillError, Member
from ha.drill.fixture import CONTENDERS, Fixture
from ha.drill.ha_provider import HYBRID, DrillJob
from store.clock import now

QUERY = "word-count"

VERIFY_S = 120.0

WHOLE_S = 300.0  # until the state has a whole version, which Spark writes after ten batches and some time

KINDS = {
    "the newest offsets": r"offsets/\d+",
    "the newest changes of the state": r"state/0/0/\d+_[^/]*\.changelog",
    "the newest whole version of the state": r"state/0/0/\d+_[^/]*\.zip",
    "the newest table of the state": r"state/0/0/SSTs/[^/]*\.sst",
    "the newest log of the source": r"sources/0/\d+(?:\.compact)?",
    "the id of the query": r"metadata",
}
"""Kinds of holes: of each the newest file that has such a path."""


def _verified(fixture: Fixture) -> list[dict[str, Any]]:
    """Return what `ha checkpoint verify` says of each batch; it fails if there is damage, which is no failure here."""
    name = f"verify-{now():.3f}"
    asking = fixture.beside(name, [*HA, "checkpoint", "verify", fixture.job.name, "--json"], {"HA_HISTORY": ""})
    fixture.wait_for("what ha checkpoint verify says", lambda: not asking.running, VERIFY_S)
    lines = [each for each in asking.log().splitlines() if each.startswith("[{")]
    if not lines:
        raise DrillError(f"ha checkpoint verify says nothing: {asking.log()[-300:]}")
    batches: list[dict[str, Any]] = next(each for each in json.loads(lines[-1]) if each["query"] == QUERY)["batches"]
    return batches


def _newest(paths: Iterable[str], kind: str) -> str:
    """Return the newest file of a kind: numbers in names grow."""
    found = [path for path in paths if re.fullmatch(kind, path)]
    numbered = sorted(found, key=lambda path: int((re.findall(r"\d+", path.rpartition("/")[2]) or ["0"])[0]))
    return numbered[-1] if numbered else ""


def _files(fixture: Fixture) -> list[str]:
    """Return the files of all leader directories of the job."""
    found: list[str] = client(fixture, "files", f"{fixture.environment.variables()['HA_FILES']}/{fixture.job.name}")
    return found


@drill("checkpoints", Expected((1, 4)))
def checkpoint_damaged(fixture: Fixture) -> None:
    """Each kind of file is lost from a checkpoint; every hole is found, and the job goes on from the newest batch
    that can be continued.
    """  # noqa: D205  # it is a title
    fixture.wait_for(
        "a whole version of the state", lambda: any(each.endswith(".zip") for each in _files(fixture)), WHOLE_S
    )
    fixture.await_batches(2)
    job, root = fixture.job, fixture.environment.variables()["HA_FILES"]
    with fixture.fault("both hosts are gone, and files of the checkpoint are lost, one kind after the other"):
        fixture.stop()
        listed = _files(fixture)
        homes = sorted({path.partition(f"/spark/{QUERY}/")[0] for path in listed if f"/spark/{QUERY}/" in path})
        home = f"{homes[-1]}/spark/{QUERY}/"
        inside = [path.removeprefix(home) for path in listed if path.startswith(home)]
        sound = _verified(fixture)
        fixture.check("no false alarm", all(each["condition"] != "damaged" for each in sound), f"{len(sound)} batches")

        def move(path: str, *, back: bool = False) -> None:
            there, hole = f"{job.name}/{home}{path}", f"holes/{job.name}/{path}"
            ends = (hole, there) if back else (there, hole)
            client(fixture, "rename", root, *ends)

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
        fixture.check("every kind of hole is found", not missed, f"{len(KINDS)} kinds, missed: {missed or 'none'}")
        move(_newest(inside, KINDS["the newest changes of the state"]))
        batches = _verified(fixture)
        best = max((each["batch"] for each in batches if each["condition"].startswith("restorable")), default=-1)
        known = 0 <= best < batches[-1]["batch"]
        fixture.check("it says what can be continued", known, f"batch {best}; the newest is {batches[-1]['batch']}")
        _put_back(fixture, best)
        fixture.contend_all()


def _put_back(fixture: Fixture, batch: int) -> None:
    flags = ["--to", f"{batch}", "--outputs", "aside", "--yes", "--json"]
    command = [*HA, "checkpoint", "rewind", fixture.job.name, QUERY, *flags]
    # It leads the job, so it belongs to the history.
    said = fixture.let(f"rewind-{now():.3f}", command, VERIFY_S, {"HA_CONTENDER": "operator"})
    trash = json.loads(said.strip().splitlines()[-1])["trash"]
    fixture.check("the query is put back", bool(trash), f"to batch {batch}; {trash or 'nothing'} is in the trash")


def _bad(job: DrillJob, name: str) -> list[str]:
    """Run a version that counts each word twice."""
    return [*HYBRID.contend(job, name), "--twice"]


@drill("checkpoints", Expected((2, 6)))
def rewind_after_bad_deploy(fixture: Fixture) -> None:
    """A version that counts wrongly is deployed; the query is put back to the batch before it, with its output."""
    with fixture.fault("a version is deployed that counts each word twice, and is noticed after some batches"):
        fixture.stop()
        good = max(each["batch"] for each in _verified(fixture) if each["condition"].startswith("restorable"))
        fixture.contend_all(_bad)
        fixture.await_batches(3)
        fixture.stop()
        _put_back(fixture, good)
        fixture.contend_all()


# --- rescale-under-kills

STEPS = (8, 32, 5)  # numbers of state partitions, one after the other

RESCALE_KILLS = 6
RESCALE_S = 240.0


def _rescaling(fixture: Fixture, partitions: int) -> Member:
    """Start the command; it leads the job, so it belongs to the history."""
    flags = ["--deep", "--redo-begun", "--yes", "--json", "--timeout", "90"]
    command = [*HA, "checkpoint", "rescale", fixture.job.name, QUERY, "--partitions", f"{partitions}", *flags]
    return fixture.beside(f"rescale-{now():.3f}", command, {"HA_CONTENDER": "operator"})


def _leads(fixture: Fixture, command: Member, before: int) -> None:
    fixture.wait_for("the lead of the command", lambda: fixture.epoch > before or not command.running, RESCALE_S)


def _rescaled(fixture: Fixture, partitions: int) -> float:
    """Rescale undisturbed, check that all pairs were compared, and return the seconds that it has led the job."""
    before = fixture.epoch
    command = _rescaling(fixture, partitions)
    _leads(fixture, command, before)
    began = now()
    log = fixture.await_end(command, RESCALE_S)
    said = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
    same = bool(said["states"]) and all(each["hash"] is not None for each in said["states"])
    keys = sum(each["keys"] for each in said["states"])
    done = f"from {said['present']} to {partitions} partitions, {keys} keys"
    fixture.check(f"the same keys and values in {partitions} partitions", same, done)
    return now() - began


def _partitions(fixture: Fixture) -> int:
    look = asked(fixture, "checkpoint", "rescale", fixture.job.name, QUERY, "--partitions", f"{STEPS[0]}", "--dry-run")
    return int(look["present"])


def _goes_on(fixture: Fixture) -> None:
    fixture.contend(CONTENDERS[0])
    fixture.await_batches(2)
    fixture.stop()


def _killed(fixture: Fixture, wanted: int, after: float, *, all_of_it: bool) -> bool:
    """Start a rescale, and kill it so many seconds after it has begun to lead; returns whether that came in time."""
    before = fixture.epoch
    command = _rescaling(fixture, wanted)
    _leads(fixture, command, before)
    fixture.run_for(after)
    in_time = command.running
    fixture.lose(command, command.end if all_of_it else command.kill)  # its JVM ends by itself then
    return in_time


@drill("checkpoints", Expected((2 * RESCALE_KILLS, 4 * RESCALE_KILLS + 8)))
def rescale_under_kills(fixture: Fixture) -> None:
    """The state goes to 8, 32 and 5 partitions, and the command that does it is killed 6 times; the query starts each
    time.
    """  # noqa: D205  # it is a title
    first, second, third = STEPS
    random, found = Random(0), Counter[str]()  # noqa: S311  # drawn points, not secrets
    with fixture.fault(f"the query goes to {first}, {second} and {third} state partitions; {RESCALE_KILLS} kills"):
        fixture.stop()
        seconds = _rescaled(fixture, first)
        _goes_on(fixture)
        while found["killed"] < RESCALE_KILLS and found["tries"] < 2 * RESCALE_KILLS:
            before = _partitions(fixture)
            wanted = third if before == second else second
            killed = _killed(fixture, wanted, random.uniform(0, seconds), all_of_it=bool(found["tries"] % 2))
            _goes_on(fixture)
            after = {before: "as before", wanted: "rescaled"}.get(_partitions(fixture), "neither")
            found.update(["tries", *(["killed", after] if killed else [])])
        ours = found["as before"] + found["rescaled"]
        whole = found["killed"] == ours == RESCALE_KILLS
        detail = f"{found['killed']} kills, {ours} queries went on: {found['rescaled']} of them rescaled"
        fixture.check("the query starts after each kill", whole, detail)
        for each in (second, third):
            if _partitions(fixture) != each:
                _rescaled(fixture, each)
            _goes_on(fixture)
        fixture.check("the last number of partitions", _partitions(fixture) == third, f"{third}")
        fixture.contend_all()
