"""The answers that leaders have published, as the checker reads them."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.history.checker import check
from ha.history.checkpoint_rules import PublishedAnswer, published_answers
from ha.history.events import Event, Granted, LookedUp, Stored
from leader.layout.information import LeaderInformation, Record, endpoint_entries
from leader.layout.names import LeaderDirectory
from tests.unit.leader.samples import A, B

JOB = "orders"
FIRST, SECOND = LeaderDirectory(1, A), LeaderDirectory(2, B)


def entries(directory: LeaderDirectory, endpoints: Mapping[str, str], version: int = 1) -> list[str]:
    information = LeaderInformation(JOB, directory.epoch, directory.session_id, endpoints, version)
    return sorted(f"{directory.name}/record/{each.name}" for each in endpoint_entries(information))


def made(at: float, path: str) -> Stored:
    return Stored(at, JOB, "make", path, "", "")


def answers(*events: Event) -> list[PublishedAnswer]:
    return list(published_answers(events))


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(min_size=1, max_size=20), max_size=4))
def test_an_answer_is_what_a_leader_writes(endpoints: dict[str, str]) -> None:
    paths = entries(FIRST, endpoints)
    found = answers(*(made(at, path) for at, path in enumerate(paths)))
    assert found == [PublishedAnswer(len(paths) - 1, 1, A, tuple(sorted(endpoints.items())))]


def test_an_answer_counts_from_its_last_entry_and_by_a_rename_too() -> None:
    one, two = entries(FIRST, {"a": "1", "b": "2"})
    found = answers(made(1.0, one), Stored(2.0, JOB, "rename", f"{FIRST.name}/record/old", two, ""))
    assert found == [PublishedAnswer(2.0, 1, A, (("a", "1"), ("b", "2")))]


def test_a_claim_publishes_nothing_of_the_leader_before() -> None:
    (old,) = entries(FIRST, {"rest": "a:1"})
    taken_along = old.replace(FIRST.name, SECOND.name)
    assert answers(Stored(1.0, JOB, "rename", FIRST.name, SECOND.name, ""), made(2.0, taken_along)) == []


def test_versions_are_not_mixed() -> None:
    first, second = entries(FIRST, {"a": "1", "b": "2"}), entries(FIRST, {"a": "3", "b": "4"}, 2)
    assert answers(made(1.0, first[0]), made(2.0, second[1])) == []


@pytest.mark.parametrize("path", ["x", f"{FIRST.name}/record/lease~1", f"{FIRST.name}/record/endpoint~1~2", "a/b/c"])
def test_other_changes_say_nothing(path: str) -> None:
    assert answers(made(1.0, path)) == []


def test_a_mistake_in_the_readers_parser_does_not_make_an_answer_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker once asked that parser what had been published."""
    wrong = LeaderInformation(JOB, 2, B, {"rest": "a:1"})
    monkeypatch.setattr(Record, "published", lambda *_: wrong)
    events: list[Event] = [
        Stored(1.0, JOB, "rename", FIRST.name, SECOND.name, ""),
        Granted(1.0, JOB, "b", 2, B, "released"),
        *(made(2.0, path) for path in entries(SECOND, {"rest": "b:1"})),
        LookedUp(3.0, JOB, 3.1, 2.0, "r", "leader", 2, B, {"rest": "a:1"}),
        LookedUp(4.0, JOB, 4.1, 2.0, "s", "leader", 2, B, {"rest": "b:1"}),
    ]
    assert [(each.guarantee, each.at) for each in check(events)] == [("R2", 3.1)]
