"""Terminals that do not have each sign: what they lack is shown by its number, and nothing ends with a traceback."""

import pytest

from tests.unit.ha.noting import STAYS, Notes, run
from tests.unit.ha.programs import Workplace

pytestmark = pytest.mark.programs

WHY = "new disks \N{RIGHTWARDS ARROW} rack 7"


@pytest.mark.parametrize(
    ("encoding", "shown"), [("latin-1", r"new disks \u2192 rack 7"), ("utf-8", WHY)], ids=["latin-1", "utf-8"]
)
def test_a_sign_that_a_terminal_lacks_is_shown_by_its_number(
    workplace: Workplace, notes: Notes, encoding: str, shown: str
) -> None:
    notes.until(1, run(workplace, "a", STAYS))
    paused = workplace.ha("job", "pause", "orders", "--reason", WHY)
    assert paused.wait() == 0, paused.said
    listed = workplace.ha("job", "list", PYTHONIOENCODING=encoding)
    assert listed.wait() == 0, listed.said
    assert shown.encode(encoding) in listed.output.read_bytes() + listed.errors.read_bytes()
