"""The programs of the zoo: each is declared, and the page says what was recorded of it."""

from tests.system.zoo import page, results
from tests.system.zoo.declared import BY_NAME, PROGRAMS, ZOO

ACCEPTED = {"exact", "refused", "told"}
"""What a recorded verdict may be. `late` is none: nobody knows then whether the job stands still."""


def test_each_program_is_declared_once() -> None:
    assert sorted(BY_NAME) == sorted(each.stem for each in PROGRAMS.glob("*.py"))
    assert len(BY_NAME) == len(ZOO)


def test_what_was_recorded_is_no_fault_of_ours() -> None:
    verdicts = {name: found["guarded"].verdict for name, found in results.read().items() if "guarded" in found}
    assert {name: verdict for name, verdict in verdicts.items() if verdict not in ACCEPTED} == {}


def test_the_page_says_what_was_recorded() -> None:
    assert page.PAGE.read_text() == page.page(), "python -m tests.system.zoo.page"
