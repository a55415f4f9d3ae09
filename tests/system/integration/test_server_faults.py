"""Faults of real servers: of each the first sentence says the cause and the next step, as the page has it."""

import pytest

from ha.sandbox import Sandbox
from tests.system.integration.server_faults import PAGE, made

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]


def test_the_page_says_what_is_said(healed: Sandbox) -> None:
    text = made(healed)
    assert "| nothing: " not in text
    assert text == PAGE.read_text(), "run: python -m tests.system.integration.server_faults"
