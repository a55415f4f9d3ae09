"""Durations that contradict each other are refused, with one sentence that names them."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leader.errors import InvalidSettings
from leader.layout.lease import Lease, Mode
from leader.timing import CONFIRMATIONS_PER_SESSION, RENEWALS_PER_TTL, SESSION_SHARE, Timing
from tests.unit.leader.samples import A


def test_the_defaults_are_valid_and_as_designed() -> None:
    timing = Timing()
    assert (timing.short_ttl, timing.long_ttl, timing.session_timeout) == (6, 60, 10)
    assert (timing.call_timeout, timing.stop_margin) == (1.5, 1.5)
    assert (timing.short_ttl_ms, timing.long_ttl_ms) == (6000, 60_000)
    assert (timing.poll, timing.retry) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("given", "derived"),
    [({"session_timeout": 4.0}, 0.6), ({"short_ttl": 2.0}, 0.5), ({"short_ttl": 30.0, "session_timeout": 30.0}, 1.5)],
)
def test_call_timeout_and_stop_margin_follow_from_the_others(given: dict[str, float], derived: float) -> None:
    timing = Timing(**given)
    assert timing.call_timeout == pytest.approx(derived)
    assert timing.stop_margin == pytest.approx(derived)


def test_a_given_duration_is_not_derived() -> None:
    timing = Timing(call_timeout=1.0, stop_margin=0.25)
    assert (timing.call_timeout, timing.stop_margin) == (1.0, 0.25)


@given(st.floats(0.01, 10_000), st.floats(0.01, 10_000))
def test_derived_durations_fit_any_pair_that_people_set(short_ttl: float, session_timeout: float) -> None:
    timing = Timing(short_ttl=short_ttl, session_timeout=session_timeout, long_ttl=20_000)
    one_lost_renewal = timing.short_ttl / RENEWALS_PER_TTL + timing.call_timeout
    assert one_lost_renewal < timing.short_ttl * (1 - timing.drift) - timing.stop_margin
    one_slow_answer = 2 * timing.session_timeout / CONFIRMATIONS_PER_SESSION + timing.call_timeout
    assert one_slow_answer < timing.session_timeout * (SESSION_SHARE - timing.drift) - timing.stop_margin
    assert timing.poll + timing.call_timeout < timing.short_ttl


DURATIONS = ["short_ttl", "long_ttl", "session_timeout", "call_timeout", "stop_margin", "hand_over"]


SECONDS, SHARE = "it must be from 0.001 to 999,999 seconds", r"it must be greater than 0 and not more than 0\.1"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        *((name, value, SECONDS) for name in DURATIONS for value in (-1.0, 0.0004, 1e6, float("inf"), float("nan"))),
        *((name, 0.0, SECONDS) for name in sorted({*DURATIONS} - {"call_timeout", "stop_margin"})),
        *(("drift", value, SHARE) for value in (-0.01, 0.0, 0.11, float("inf"), float("nan"))),
    ],
)
def test_invalid_durations_and_drifts_are_refused(name: str, value: float, says: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"^{name} is .*: {says}"):
        Timing(**{name: value})


CLASHES: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"short_ttl": 3.0, "call_timeout": 1.5},
        ["short_ttl (3 s)", "call_timeout (1.5 s)", "clash", "raise short_ttl or lower call_timeout"],
    ),
    ({"stop_margin": 4.0}, ["short_ttl (6 s)", "call_timeout (1.5 s)", "short_ttl less stop_margin is 1.94 s"]),
    (
        {"session_timeout": 6.0, "call_timeout": 1.9, "short_ttl": 20.0},
        ["session_timeout (6 s)", "call_timeout (1.9 s)", "raise session_timeout or lower call_timeout"],
    ),
    ({"long_ttl": 6.0, "session_timeout": 5.0}, ["long_ttl (6 s)", "short_ttl (6 s)", "must be the longer one"]),
    ({"long_ttl": 10.0}, ["long_ttl (10 s)", "session_timeout (10 s)", "must be the longer one"]),
]


@pytest.mark.parametrize(("given", "parts"), CLASHES, ids=lambda value: "" if isinstance(value, list) else str(value))
def test_every_clash_is_a_sentence_with_settings_values_and_a_way_out(given: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Timing(**given)
    sentence = str(caught.value)
    assert all(part in sentence for part in parts), sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


@given(st.floats(0.001, 999_999))
@example(999_999.0)
def test_every_accepted_ttl_can_be_written_into_a_lease(long_ttl: float) -> None:
    try:
        timing = Timing(long_ttl=long_ttl)
    except InvalidSettings:
        return
    lease = Lease(1, Mode.ZOOKEEPER, timing.long_ttl_ms, A, "", "a")
    assert Lease.parse(lease.name) == lease


@pytest.mark.parametrize(("short", "session", "adopted"), [(6.0, 10.0, 10_000), (12.0, 5.0, 12_000)])
def test_a_lease_that_is_taken_up_outlasts_any_belief(short: float, session: float, adopted: int) -> None:
    assert Timing(short_ttl=short, session_timeout=session).adopted_ttl_ms == adopted
