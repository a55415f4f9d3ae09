"""Refusals: each reason is said once, and each pause is longer than the last one, up to a bound."""

import logging

import pytest

from store.zookeeper.refusals import LONGEST_PAUSE_S, Reason, Refusals


def pauses(refusals: Refusals, count: int) -> list[float]:
    found = []
    for _ in range(count):
        refusals.refused(Reason.LOGIN_FAILED, "wrong")
        found.append(refusals.pause())
    return found


def test_pauses_double_from_half_a_second_to_thirty() -> None:
    assert pauses(Refusals(dice=lambda: 1.0), 9) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert pauses(Refusals(dice=lambda: 1.0), 2000)[-1] == LONGEST_PAUSE_S


def test_the_dice_take_up_to_half_of_a_pause() -> None:
    assert pauses(Refusals(dice=lambda: 0.0), 7) == [0.25, 0.5, 1, 2, 4, 8, 15]


def test_who_was_not_refused_does_not_wait() -> None:
    refusals = Refusals(dice=lambda: 1.0)
    assert refusals.pause() == 0
    pauses(refusals, 3)
    refusals.served()
    assert refusals.pause() == 0, "it begins anew"
    assert pauses(refusals, 1) == [0.5]


def test_an_operation_that_is_not_allowed_is_no_reason_to_wait() -> None:
    refusals = Refusals(dice=lambda: 1.0)
    refusals.not_allowed("Create /sessions")
    assert refusals.pause() == 0
    assert refusals.counts[Reason.NOT_ALLOWED] == 1


def test_each_reason_is_said_once_until_the_server_serves_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refusals = Refusals()
    for _ in range(3):
        refusals.refused(Reason.LOGIN_FAILED, "wrong password.")
        refusals.refused(Reason.TLS, "no TLS.")
        refusals.not_allowed("Get /sessions")
    refusals.served()
    refusals.served()
    refusals.refused(Reason.LOGIN_FAILED, "wrong password.")
    refusals.not_allowed("Get /sessions")
    begin = "ZooKeeper does not attest this process: "
    assert [each.message for each in caplog.records] == [
        f"{begin}wrong password.",
        f"{begin}no TLS.",
        f"{begin}its access list does not allow Get /sessions.",
        "ZooKeeper accepts this process now.",
        f"{begin}wrong password.",
    ]
    assert refusals.counts == {
        Reason.LOGIN_REQUIRED: 0,
        Reason.LOGIN_FAILED: 4,
        Reason.CREDENTIALS: 0,
        Reason.TLS: 3,
        Reason.NOT_ALLOWED: 4,
    }
