"""A list of lies: what all views say of jobs in every state, side by side. None may contradict another."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.ha.conftest import hurried
from tests.unit.ha.views.states import PAGE, STATES, Told, gather, page

ENDED = {"FAILED", "FINISHED", "CANCELED"}
NO_LEADER = 3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Told]]:
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("states")
        hurried(place, patch)
        yield gather(place / "jobs")


def led(it: Told) -> bool:
    return it.row["holder"] is not None


def left(it: Told) -> bool:
    return not led(it) and it.row["state"] not in ENDED and it.job != "damaged"


def said(it: Told, sentence: str) -> bool:
    """Whether the list, the screen of the job and the API say it, or none of them does."""
    story = it.api["/story"][1]["said"]
    found = {any(sentence in each for each in place) for place in (it.listed, story)} | {sentence in it.show.out}
    assert len(found) == 1, (sentence, it.listed, story, it.show.out)
    return found.pop()


RULES: dict[str, Callable[[Told], bool]] = {
    "list, show and the API have one state, and the same facts": lambda it: (
        it.row == it.api["all"][1] == it.api[""][1] == it.api["/story"][1]["glance"] == it.story.json["glance"]
    ),
    "the screen begins with the state": lambda it: it.show.out.split()[:2] == [it.job, it.row["state"] or "its"],
    "readers have a leader exactly if somebody holds the lease": lambda it: (
        (it.leader.code == 0) == led(it) == (it.api["/leader"][1]["leader"] is not None)
    ),
    "without one the command says so with its exit code": lambda it: led(it) or it.leader.code == NO_LEADER,
    "the metrics say the same": lambda it: it.metrics == float(led(it)),
    "queries are led exactly if the job is": lambda it: (
        it.queries.json["led"] == it.api["/queries"][1]["led"] == led(it)
    ),
    "what nobody leads neither runs, nor fails, nor waits for a try": lambda it: (
        led(it) or (it.row["state"] in {*ENDED, "SUSPENDED", "CREATED"} and it.row["next_try"] is None)
    ),
    "what nobody leads says so, and who did": lambda it: (
        (said(it, "no process leads it") or said(it, "no process replicates it")) == left(it)
        and (it.row["last_holder"] is None) == (led(it) or it.row["epoch"] == 0)
    ),
    "and since when, unless an operator's mark hides it": lambda it: (
        (it.row["since"] is not None)
        == (not led(it) and it.row["epoch"] > 0 and it.row["paused"] is None and not it.row["barred"])
    ),
    "a person is told how to have it led": lambda it: (
        not left(it) or any("`ha run" in each or "`ha replica" in each for each in it.api["/story"][1]["possible"])
    ),
    "and nothing that only a leader can do": lambda it: (
        led(it) or not any("job restart" in each or "job stop" in each for each in it.api["/story"][1]["possible"])
    ),
    "a handover is offered of a job that is led, and not paused": lambda it: (
        any("job handover" in each for each in it.api["/story"][1]["possible"])
        == (led(it) and it.row["paused"] is None and it.row["state"] not in ENDED and ".replica" not in it.job)
    ),
    "what has ended is run once more, and never resumed": lambda it: (
        (it.row["state"] in ENDED) == any("--again" in each for each in it.api["/story"][1]["possible"])
    ),
    "a pause is told everywhere, with what ends it": lambda it: (
        said(it, f"`ha job resume {it.job}`") == (it.row["paused"] is not None)
    ),
    "a leadership has a beginning only while it lasts": lambda it: led(it) or it.story.json["led_since"] is None,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("job", [each for each in STATES if each != "damaged"])
def test_no_view_contradicts_another(told: dict[str, Told], job: str, rule: str) -> None:
    assert RULES[rule](told[job]), told[job]


def test_a_damaged_job_is_called_so_and_answers_nothing_else(told: dict[str, Told]) -> None:
    it = told["damaged"]
    assert (it.row["lease"], it.row["state"], it.row["holder"]) == ("damaged", None, None)
    assert it.listed == [
        "its record holds no lease: somebody has changed it by hand, and `ha host doctor damaged` says what helps"
    ]
    assert {it.show.code, it.leader.code, it.queries.code} == {NO_LEADER}
    assert {it.api[part][0] for part in ("", "/story", "/queries")} == {404}


@pytest.mark.parametrize(
    ("job", "line"),
    [
        ("restarting", "note        has failed 1 times in a row, last on host-a (exit-3): the next try is at "),
        ("restarting", "failure     "),
        ("batches", "batch       4 of clean, 200.0 rows/s"),
        ("stored", "program     version 1, stored by ann at "),
        ("running", "program     none is stored: each sidecar runs a command of its own"),
        ("stopping", "request     stop by ann is asked (r1)"),
        ("handing-over", "under way   handover to b"),
        ("rewinding", "under way   rewind of clean"),
        ("importing", "under way   import of clean"),
        ("draining", "note        a is barred by ann until 2096-10-02T07:06:40Z (new disks): it leads until another "),
        ("newer", "note        its state is one of a newer version: ask with that version of ha"),
        ("left.replica", "note        no process replicates it since "),
    ],
)
def test_the_screen_of_a_job_tells_its_story(told: dict[str, Told], job: str, line: str) -> None:
    assert any(each.startswith(line) for each in told[job].show.out.splitlines()), told[job].show.out


def test_the_page_is_what_was_told(told: dict[str, Told]) -> None:
    assert Path(PAGE).read_text() == page(told), "run: python -m tests.unit.ha.views.states"
