"""Each fault, broken on purpose: its command says the cause and the next step first, as the page has it."""

import re

import pytest

from tests.unit.ha.faults.catalogue import FAULTS
from tests.unit.ha.faults.page import PAGE, made


def test_at_least_sixty_are_broken() -> None:
    assert sum(map(len, FAULTS.values())) >= 60


@pytest.mark.slow
def test_the_page_says_what_is_said() -> None:
    text = made()
    assert "| nothing: " not in text
    assert text == PAGE.read_text(), "run: python -m tests.unit.ha.faults.page"


def test_no_sentence_is_without_what_it_is_about() -> None:
    rows = re.findall(r"^\| (.*) \| `ha (.*)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == sum(map(len, FAULTS.values()))
    assert not [row for row in rows if len(row[2]) < 20]
