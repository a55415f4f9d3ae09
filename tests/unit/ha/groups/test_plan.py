"""The plan of a balance: it makes loads more even, moves few jobs, and none that has to stay."""

from hypothesis import example, given
from hypothesis import strategies as st

from ha.groups.balancing import GOAL, SHARE, JobLoad, imbalance, plan

ROOTS = ("a", "b", "c")

loads = st.builds(
    lambda jobs, others: (
        {
            root: others[number] + sum(each.rate for each in jobs if each.root == root)
            for number, root in enumerate(ROOTS)
        },
        jobs,
    ),
    st.lists(
        st.tuples(st.sampled_from(ROOTS), st.floats(0, 50), st.sampled_from(["", "", "", "it has moved lately"])),
        max_size=40,
    ).map(lambda rows: [JobLoad(f"job-{number}", *row) for number, row in enumerate(rows)]),
    st.lists(st.floats(0, 100), min_size=3, max_size=3),
)


@example(
    (
        {"a": 24.0, "b": 33.0, "c": 24.0},
        [
            JobLoad(f"job-{number}", root, rate, "")
            for number, (root, rate) in enumerate([("a", 22.0), ("b", 9.0), ("b", 24.0), ("b", 1e-278), ("c", 22.0)])
        ],
    )
)
@given(loads)
def test_a_move_makes_its_pair_more_even_and_no_more_worse(given_: tuple[dict[str, float], list[JobLoad]]) -> None:
    roots, jobs = given_
    found = plan(roots, jobs)
    rates = dict(roots)
    for each in found.moves:
        gap = rates[each.source] - rates[each.target]
        assert rates[each.source] == max(rates.values())
        assert rates[each.target] == min(rates.values())
        rates[each.source] -= each.rate
        rates[each.target] += each.rate
        assert abs(rates[each.source] - rates[each.target]) < gap
        assert max(rates[each.source], rates[each.target]) <= gap + rates[each.target]
    assert abs(found.after - imbalance(rates)) < 0.01
    assert found.after <= found.before + 0.01


@given(loads)
def test_few_jobs_move_once_each_and_none_that_stays(given_: tuple[dict[str, float], list[JobLoad]]) -> None:
    roots, jobs = given_
    found = plan(roots, jobs)
    known = {each.job: each for each in jobs}
    assert len(found.moves) <= SHARE * len(jobs)
    assert len({each.job for each in found.moves}) == len(found.moves)
    for each in found.moves:
        assert (each.source, each.rate) == (known[each.job].root, known[each.job].rate)
        assert not known[each.job].stays
    assert found.stay == {each.job: each.stays for each in jobs if each.stays}


@given(loads)
def test_it_ends_at_the_goal_or_says_why_not(given_: tuple[dict[str, float], list[JobLoad]]) -> None:
    found = plan(*given_)
    assert bool(found.why) == (found.after > GOAL + 0.001) or abs(found.after - GOAL) < 0.001
    if found.before <= GOAL - 0.001:
        assert not found.moves


@given(loads)
def test_the_same_load_gives_the_same_plan(given_: tuple[dict[str, float], list[JobLoad]]) -> None:
    roots, jobs = given_
    assert plan(roots, jobs) == plan(dict(reversed(roots.items())), jobs[::-1])


def test_sixty_skewed_jobs_come_to_the_goal_with_a_fifth_of_them() -> None:
    jobs = [
        JobLoad(f"job-{number}", "a" if number < 40 else "bc"[number % 2], 10.0 / (1 + number % 7))
        for number in range(60)
    ]
    roots = {root: sum(each.rate for each in jobs if each.root == root) for root in ROOTS}
    found = plan(roots, jobs)
    assert found.before > 1.8
    assert found.after <= GOAL
    assert len(found.moves) <= 12


def test_one_job_that_is_all_the_load_stays() -> None:
    found = plan(
        {"a": 30.0, "b": 0.0}, [JobLoad(f"job-{number}", "a", 30.0 if not number else 0.0) for number in range(9)]
    )
    assert (found.moves, found.why) == ([], "no job that may move would make it more even")


def test_nobody_asks_anything() -> None:
    assert plan({"a": 0.0, "b": 0.0}, []).before == 1.0


def test_the_share_is_a_bound() -> None:
    jobs = [JobLoad(f"job-{number}", "a", 1.0) for number in range(10)]
    found = plan({"a": 10.0, "b": 0.0}, jobs)
    assert (len(found.moves), found.why) == (2, "at most 20% of 10 jobs move at once")
    assert found.after == 1.6


def test_at_the_goal_nothing_moves() -> None:
    jobs = [JobLoad(f"job-{number}", "a", 1.0) for number in range(10)]
    assert plan({"a": 12.0, "b": 8.0}, jobs).moves == []
    assert len(plan({"a": 12.1, "b": 7.9}, jobs).moves) == 1
