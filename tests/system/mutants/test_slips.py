"""Slips: each kind is made, once, and nothing in what people are told."""

from tests.system.mutants.slips import slips

MODULE = '''"""Text."""

def decide(lease: "int | None", now: float) -> bool:
    """Say."""
    last = now
    seen = 1
    note(last)
    if lease is None or now < seen:
        _log.warning("%s is gone after %d s", lease, 3)
        raise ValueError(f"{lease + 1}")
    return not now
'''


def test_the_slips_of_a_module() -> None:
    found = [(each.line, each.what) for each in slips(MODULE)]
    assert sorted(found) == [
        (6, "1 is 2"),
        (6, "it comes a line too early"),
        (7, "it comes a line too early"),
        (7, "it is not done"),
        (8, "And instead"),
        (8, "Is is IsNot"),
        (8, "Lt is LtE"),
        (8, "the condition is negated"),
        (11, "it returns nothing"),
    ]


def test_each_changes_its_line_alone() -> None:
    (early,) = [each.text for each in slips(MODULE) if (each.line, each.what) == (7, "it comes a line too early")]
    assert "note(last)\n    seen = 1" in early
    (turned,) = [each.text for each in slips(MODULE) if each.what == "Lt is LtE"]
    assert "if lease is None or now <= seen:" in turned
    assert turned.count("\n") == early.count("\n")
