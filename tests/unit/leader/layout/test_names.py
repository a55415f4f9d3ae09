"""Names are the wire format: our names are read back as written, and foreign names are never taken for ours."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.names import (
    MAX_EPOCH,
    MAX_REACHED,
    LeaderDirectory,
    check_component,
    check_job,
    check_word,
    escape,
    newest,
    unescape,
)
from store import paths
from store.files import MAX_COMPONENT_BYTES
from tests.unit.leader.samples import SESSION_IDS, TEXTS, A, B

HOSTILE = [
    "", ".", "..", "../orders", "a/b", "/", "-a", ".a", "_a", "a b", "a\n", "\n", "a\0", "a\x7f", "ä", "\u0663",
    "a:b", "a%2f", "a,b", "a~b", "a=b", "a*", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("name", ["a", "0", "orders", "a.b_c-d", "A" * 128])
def test_names_of_jobs(name: str) -> None:
    assert check_job(name) == name


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 129])
def test_hostile_names_of_jobs_are_refused_with_the_rule_in_the_error(name: str) -> None:
    with pytest.raises(InvalidName, match=r"1 to 128 letters, digits, dots, underscores and hyphens") as caught:
        check_job(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 65])
def test_hostile_names_are_no_endpoints_and_no_contenders(name: str) -> None:
    with pytest.raises(InvalidName, match=r"is not a name of a contender: use 1 to 64 letters"):
        check_word(name, "a contender")


def test_names_may_have_their_greatest_length_and_not_one_more() -> None:
    assert check_word("w" * 64, "an endpoint") == "w" * 64
    assert check_component("é" * 127 + "x", "It") == "é" * 127 + "x"
    with pytest.raises(InvalidName, match=r"It is too long: .* takes 256 bytes and 255 are allowed"):
        check_component("é" * 128, "It")


@given(TEXTS)
def test_escaping_is_undone_by_unescaping(text: str) -> None:
    try:
        escaped = escape(text)
    except InvalidName:
        assert any(0xD800 <= ord(character) < 0xE000 for character in text)
        return
    assert re.fullmatch(r"[A-Za-z0-9._-]*", escaped)
    assert unescape(escaped) == text


def test_a_lone_surrogate_cannot_be_escaped() -> None:
    with pytest.raises(InvalidName, match="lone surrogate"):
        escape("a\ud800")


@given(TEXTS)
@example("_41")  # an A, which needs no escape: two names for one text would break compare-and-swap
@example("_C3_A9")
@example("_ff")
@example("_")
@example("a_4")
@example("a\n")
def test_unescape_takes_only_the_output_of_escape(text: str) -> None:
    try:
        assert escape(unescape(text)) == text
    except InvalidName:
        return


@given(st.integers(0, MAX_EPOCH), SESSION_IDS)
def test_a_leader_directory_is_read_back(epoch: int, session_id: str) -> None:
    directory = LeaderDirectory(epoch, session_id)
    assert LeaderDirectory.parse(directory.name) == directory
    assert re.fullmatch(r"[0-9a-f-]+", directory.name), "Spark and Hadoop mangle anything else"


@given(TEXTS | st.from_regex(r"\d{9,11}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n?"))
@example(f"\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0665-{A}")
@example(f"0000000005-{A}\n")
@example(f"0000000005-{A.upper()}")
@example(f"5-{A}")
@example(f"00000000005-{A}")
@example(f".0000000005-{A}")
def test_a_name_that_parses_as_a_leader_directory_is_written_back_the_same(name: str) -> None:
    directory = LeaderDirectory.parse(name)
    assert directory is None or directory.name == name


@pytest.mark.parametrize(
    "name",
    [
        f"\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0665-{A}", f"0000000005-{A.upper()}", f"5-{A}",
        "spark", "",
    ],
)  # fmt: skip
def test_other_names_are_no_leader_directory(name: str) -> None:
    assert LeaderDirectory.parse(name) is None


def test_the_newest_directory_is_the_one_of_the_highest_epoch() -> None:
    old, new = LeaderDirectory(9, B), LeaderDirectory(10, A)
    assert newest([new.name, old.name, "9999999999", "_tmp", f"{old.name}.bak", "status=RUNNING"]) == new
    assert newest(["spark", ""]) is None
    assert newest([]) is None


@given(st.lists(st.builds(LeaderDirectory, st.integers(0, MAX_EPOCH), SESSION_IDS), min_size=1))
def test_names_sort_as_epochs(directories: list[LeaderDirectory]) -> None:
    assert sorted(each.name for each in directories) == [each.name for each in sorted(directories)]
    reached = [each for each in directories if each.epoch <= MAX_REACHED]
    assert newest([each.name for each in directories]) == max(reached, default=None)


def test_an_epoch_that_no_job_reaches_is_not_believed() -> None:
    highest = LeaderDirectory(MAX_REACHED, A)
    beyond = LeaderDirectory(MAX_REACHED + 1, A)
    assert newest([highest.name, beyond.name]) == highest
    assert newest([beyond.name]) is None


@given(SESSION_IDS)
def test_session_ids(session_id: str) -> None:
    assert names.is_session_id(session_id)
    assert not names.is_session_id(session_id.replace("-", ""))
    assert not names.is_session_id(f"{session_id}\n")


@given(st.text(min_size=1, max_size=60))
def test_every_escaped_text_is_a_path_that_all_drivers_take(text: str) -> None:
    try:
        component = f"endpoint~{escape(text)}"
    except InvalidName:
        return
    if len(component) <= MAX_COMPONENT_BYTES:
        assert paths.check(component) == component
