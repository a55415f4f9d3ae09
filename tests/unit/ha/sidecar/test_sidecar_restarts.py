"""A sidecar whose command fails at random moments of a test clock: the command runs only in a leadership."""

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from ha.sidecar.phase import Standby
from leader.timing import NEVER
from tests.unit.ha.sidecar.scene import ENDS, EVENTS, FIXED, Scene, scene


@given(st.lists(st.sampled_from(EVENTS), max_size=40), st.sampled_from(["cold", "warm"]))
def test_whatever_happens_the_command_is_granted_only_a_leadership_that_lasts(
    events: list[Callable[[Scene], None]], standby: str
) -> None:
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=3, standby=standby) as made:
        for event in events:
            event(made)
            waits = made.sidecar._work._start_at < NEVER
            assert not (waits and made.running) or made.attempts.pause, "only a warm one waits for the pause"
            works = made.sidecar._savepoints._work.busy
            assert not made.leads or waits or made.running or works, "no leader is idle"
            if (
                standby == "warm"
                and isinstance(made.sidecar._leadership.phase, Standby)
                and made.sidecar._leadership.exit_code is None
            ):
                assert waits or made.running, "no standby is idle either"
        ended = [epoch for epoch, _ in made.ends]
        assert ended == sorted(set(ended)), "each leadership ends for one cause"
        assert set(range(1, made.epoch + (made.sidecar._leadership.phase == Standby()))) <= set(ended), (
            "and none without one"
        )
        answered = [each for each, _ in made.answers]
        assert len(answered) == len(set(answered)), "no request is answered twice"
        restarts = sum(each.verb.startswith(("restart", "stop-")) for each in made.accepted)
        epochs = [command.epoch for command in made.started if command.epoch]
        assert all(len(list(group)) <= 4 + restarts for _, group in itertools.groupby(epochs)), (
            "three restarts a leadership"
        )


@given(st.integers(0, 5), st.sampled_from(["none", "fixed-delay"]))
def test_the_lease_is_given_back_after_the_last_attempt_and_not_before(attempts: int, kind: str) -> None:
    expected = attempts if kind != "none" else 0
    with scene(**{**FIXED, "restart_strategy_type": kind}, restart_strategy_fixed_delay_attempts=attempts) as made:
        made.grant()
        for number in range(expected):
            made.fail()
            assert (made.leads, made.running, made.releases) == (True, None, 0)
            made.tick()
            assert len(made.started) == number + 1, "the delay is not over"
            made.tick()
            assert len(made.started) == number + 2
        made.fail()
        made.tick()
        made.tick()
        assert (made.leads, len(made.started), made.releases) == (False, expected + 1, 1)
        assert made.ends == [(1, "exit-3")]
        assert made.exceptions == [(1, "exit-3")] * (expected + 1)
        assert made.sidecar._work._counters._restarts._value.get() == expected


def test_every_end_of_a_leadership_ends_the_wait_and_gives_the_lease_back() -> None:
    for end, cause in zip(ENDS, ("revoked", "revoked", "resigned", "stopped"), strict=True):
        with scene(**FIXED) as made:
            made.grant()
            made.fail()
            end(made)
            made.tick()
            made.tick()
            made.hear()
            if end is Scene.ask:  # this has asked the contender, which revokes
                assert made.releases == 0
                made.revoke()
            assert (len(made.started), made.releases) == (1, 1), end
            assert made.ends == [(1, cause)], end
