"""What a drain does in each job."""

from collections import Counter

import pytest

from ha.drain.plan import SeenJob, least_loaded, plan

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("seen", "done"),
    [
        (SeenJob("j", 1, "a", ["a", "b"]), "bar move"),
        (SeenJob("j", 1, "b", ["a", "b"]), "bar"),
        (SeenJob("j", 1, None, ["a", "b"]), "bar"),
        (SeenJob("j", 1, "b", ["b", "c"]), ""),
        (SeenJob("j", 1, "a", ["a"]), "stuck"),
        (SeenJob("j", 1, None, ["a"]), ""),
        (SeenJob("j", 1, "a", ["a", "d"]), "stuck"),
        (SeenJob("j", 1, "b", ["a", "b"], frozenset({"b"})), "bar"),
        (SeenJob("j", 1, "a", ["a", "b"], frozenset({"b"})), "stuck"),
        (SeenJob("j", 1, "a", ["b"]), "bar move"),
        (SeenJob("j", 1, "a", None), "bar move"),
        (SeenJob("j", 1, "b", None), "bar"),
        (SeenJob("j", 1, None, None), "bar"),
    ],
)
def test_a_job_is_barred_moved_or_left_alone(seen: SeenJob, done: str) -> None:
    found = plan([seen], "a", {"d"})
    said = [name for name in ("bar", "move", "stuck") if getattr(found, name) == [seen]]
    assert " ".join(said) == done


def test_the_contender_that_leads_the_fewest_jobs_is_chosen() -> None:
    leads = Counter({"b": 2, "c": 1})
    assert [least_loaded(["c", "b", "d"], leads) for _ in range(5)] == ["d", "c", "d", "b", "c"]
