"""Names by which a query's checkpoint is found again, and others."""

import pytest

from ha.hook.query_rules import fault, unguarded
from tests.unit.ha.hook.writers import HERE


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 128])
def test_names_that_every_tool_knows(name: str) -> None:
    assert fault(name) == unguarded(name, "", HERE) == unguarded("", f"{HERE}/{name}/", HERE) == ""


@pytest.mark.parametrize(
    "name", ["a/b", "a b", "50%", "größe", "😀", ".a", "_a", "x" * 129, "a,b", "03b1fcd5-4abb-4a4b-9cf6-3f1f0e2a7c11"]
)
def test_names_that_some_tool_would_leave_out(name: str) -> None:
    assert "cannot be the name of a query" in fault(name)
    assert unguarded(name, "", HERE)
