"""Suspicion: events of a connection that prove the end of the leader's process, and events that prove nothing."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from leader.election.ports import Heard, ProbeEvent
from leader.election.suspicion import FIRST_RETRY, SLOWEST_RETRY, STEADY, ProcessMonitor, Suspicion
from leader.layout.contact import ContactAddress, ReleaseNotice
from leader.layout.lease import Lease, Mode

WHERE = ContactAddress("10.0.0.1", 4711, "5eed" * 8)
WINDOW = 10.0
NOTICE = ReleaseNotice("orders", Lease(8, Mode.RELEASED, 0, "5eed", "", "a"))
ENDS = [ProbeEvent.BROKEN, ProbeEvent.REFUSED, ProbeEvent.SILENT]


class Call:
    def __init__(self, where: ContactAddress, heard: Callable[[Heard], None]) -> None:
        self.where, self._heard = where, heard
        self.open = True

    def close(self) -> None:
        self.open = False

    def hear(self, sign: Heard) -> None:
        assert self.open, "nothing is heard of a connection that is closed"
        self.open = sign is ProbeEvent.GREETED or isinstance(sign, ReleaseNotice)
        self._heard(sign)


class Later:
    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when, self.callback = when, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Hand:
    def __init__(self) -> None:
        self.at = 100.0
        self.calls: list[Call] = []
        self.timers: list[Later] = []
        self.gone = 0

    def now(self) -> float:
        return self.at

    def call_at(self, when: float, callback: Callable[[], None]) -> Later:
        self.timers.append(Later(when, callback))
        return self.timers[-1]

    def probe(self, where: ContactAddress, heard: Callable[[Heard], None]) -> Call:
        self.calls.append(Call(where, heard))
        return self.calls[-1]

    # --- actions of the tests

    def watch(self, jitter: float = 0.5) -> ProcessMonitor:
        return ProcessMonitor(self, WHERE, WINDOW, lambda: jitter, self._gone)

    def _gone(self) -> None:
        self.gone += 1

    @property
    def due(self) -> list[Later]:
        return [each for each in self.timers if not each.cancelled]

    def wait(self) -> float:
        """Fire the next timer; return the seconds until then."""
        (timer,) = self.due
        self.timers.clear()
        waited, self.at = timer.when - self.at, timer.when
        timer.callback()
        return waited

    def hear(self, *signs: ProbeEvent) -> None:
        """Report these events on the newest connection. Each one but a greeting ends it, and a new call follows."""
        for number, sign in enumerate(signs):
            if number and signs[number - 1] is not ProbeEvent.GREETED:
                self.wait()
            self.calls[-1].hear(sign)


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.mark.parametrize("sign", [ProbeEvent.REFUSED, ProbeEvent.ANOTHER_PROCESS])
def test_an_end_and_then_a_refusal_is_the_end_of_the_process(hand: Hand, sign: ProbeEvent) -> None:
    hand.watch()
    hand.hear(ProbeEvent.GREETED)
    hand.at += 3600.0
    hand.hear(ProbeEvent.BROKEN)
    assert hand.gone == 0
    assert hand.wait() == pytest.approx(FIRST_RETRY)
    hand.hear(sign)
    assert hand.gone == 1
    assert not hand.due, "and that is the end of the watch"
    assert not [call for call in hand.calls if call.open]


@pytest.mark.parametrize("signs", list(itertools.product([ProbeEvent.BROKEN, ProbeEvent.SILENT], repeat=4)))
def test_silence_and_broken_connections_mean_nothing(hand: Hand, signs: tuple[ProbeEvent, ...]) -> None:
    hand.watch()
    hand.hear(ProbeEvent.GREETED, *signs)
    assert hand.gone == 0
    hand.wait()
    hand.hear(ProbeEvent.GREETED)
    assert hand.gone == 0


@pytest.mark.parametrize("signs", list(itertools.product([*ENDS, ProbeEvent.ANOTHER_PROCESS], repeat=3)))
def test_a_host_that_never_showed_the_process_cannot_say_it_is_gone(hand: Hand, signs: tuple[ProbeEvent]) -> None:
    hand.watch()
    hand.hear(*signs, ProbeEvent.REFUSED)
    assert hand.gone == 0


def test_a_connection_that_ends_before_the_greeting_shows_only_a_listener(hand: Hand) -> None:
    """A guard may hold the socket of a dead process: nobody greets until the command has ended, too."""
    hand.watch()
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.BROKEN, ProbeEvent.SILENT)
    assert hand.gone == 0
    hand.wait()
    hand.hear(ProbeEvent.REFUSED)
    assert hand.gone == 1


def test_a_refusal_counts_only_soon_after_the_end(hand: Hand) -> None:
    hand.watch()
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN)
    hand.wait()
    hand.at += WINDOW
    hand.hear(ProbeEvent.REFUSED, ProbeEvent.REFUSED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert hand.gone == 0
    hand.wait()
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert hand.gone == 1, "once it has been met again"


def test_a_silent_process_is_probed_ever_more_seldom_and_for_ever(hand: Hand) -> None:
    hand.watch()
    waits = []
    for _ in range(40):
        hand.calls[-1].hear(ProbeEvent.SILENT)
        waits.append(round(hand.wait(), 6))
    assert waits[:4] == pytest.approx([FIRST_RETRY * 2**n for n in range(4)])
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(SLOWEST_RETRY)


def test_a_process_that_hangs_up_at_once_is_not_probed_quickly(hand: Hand) -> None:
    hand.watch()
    waits = []
    for lasted in (STEADY, 0.0, 0.0, STEADY):
        hand.hear(ProbeEvent.GREETED)
        hand.at += lasted
        hand.hear(ProbeEvent.BROKEN)
        waits.append(hand.wait() / FIRST_RETRY)
    assert waits == pytest.approx([1, 2, 4, 1])


@pytest.mark.parametrize("jitter", [0.0, 0.25, 1.0])
def test_standbys_do_not_call_all_at_once(hand: Hand, jitter: float) -> None:
    hand.watch(jitter)
    hand.hear(ProbeEvent.SILENT)
    assert hand.wait() == pytest.approx(FIRST_RETRY * (0.5 + jitter))


def test_a_connection_that_holds_is_made_anew_now_and_then(hand: Hand) -> None:
    """It may be broken at one end only, and no traffic would ever show that."""
    hand.watch()
    hand.hear(ProbeEvent.GREETED)
    for _ in range(3):
        assert hand.wait() == pytest.approx(WINDOW)
        old, new = hand.calls[-2:]
        assert old.open, "until the new one is there"
        new.hear(ProbeEvent.GREETED)
        assert (old.open, new.open) == (False, True)
    hand.at += 1.0
    hand.calls[-1].hear(ProbeEvent.BROKEN)
    hand.wait()
    hand.hear(ProbeEvent.REFUSED)
    assert hand.gone == 1


def test_a_process_that_does_not_greet_is_probed_again_beside_the_open_connection(hand: Hand) -> None:
    """Found by the simulator: the greeting of a paused leader was lost, and the standby waited for it for ever."""
    hand.watch()
    for _ in range(3):
        assert hand.wait() == pytest.approx(WINDOW)
        assert [call.open for call in hand.calls] == [True, *[False] * (len(hand.calls) - 2), True]
    first, *_, new = hand.calls
    new.hear(ProbeEvent.GREETED)
    assert (first.open, new.open) == (False, True)
    assert hand.wait() == pytest.approx(WINDOW)
    new.hear(ProbeEvent.BROKEN)
    hand.wait()
    hand.hear(ProbeEvent.REFUSED)
    assert hand.gone == 1


def test_a_process_after_a_long_pause_greets_on_the_open_connection(hand: Hand) -> None:
    """Other connections wait in its queue until that is full. Had the first one hung up, a greeting would take long."""
    hand.watch()
    hand.wait()
    first, second = hand.calls
    second.hear(ProbeEvent.SILENT)
    assert hand.wait() == pytest.approx(WINDOW), "a call that fails ends nothing, and does not hurry the next one"
    first.hear(ProbeEvent.GREETED)
    hand.at += STEADY
    first.hear(ProbeEvent.BROKEN)
    assert not [call for call in hand.calls if call.open]
    assert hand.wait() == pytest.approx(FIRST_RETRY)
    hand.hear(ProbeEvent.REFUSED)
    assert hand.gone == 1


def test_a_process_that_dies_just_after_a_renewal_is_probed_at_once(hand: Hand) -> None:
    """Found by the simulator: only the age of the new connection counted, not the time since the first one."""
    hand.watch()
    hand.hear(*[ProbeEvent.SILENT] * 6, ProbeEvent.GREETED)
    hand.wait()
    hand.calls[-1].hear(ProbeEvent.GREETED)
    hand.at += STEADY / 2
    hand.calls[-1].hear(ProbeEvent.BROKEN)
    assert hand.wait() == pytest.approx(FIRST_RETRY)


@pytest.mark.parametrize("sign", [*ENDS, ProbeEvent.ANOTHER_PROCESS])
def test_a_renewal_that_fails_says_nothing_while_the_old_connection_holds(hand: Hand, sign: ProbeEvent) -> None:
    hand.watch()
    hand.hear(ProbeEvent.GREETED)
    hand.wait()
    old, new = hand.calls[-2:]
    new.hear(sign)
    assert hand.gone == 0
    assert old.open
    assert hand.wait() == pytest.approx(WINDOW)
    old.hear(ProbeEvent.BROKEN)
    assert not hand.calls[-1].open, "there is one call at a time, but for renewals"
    hand.wait()
    hand.hear(ProbeEvent.REFUSED)
    assert hand.gone == 1


def test_nothing_happens_once_it_is_closed(hand: Hand) -> None:
    for signs in ((), (ProbeEvent.GREETED,), (ProbeEvent.GREETED, ProbeEvent.BROKEN), (ProbeEvent.SILENT,)):
        watch = hand.watch()
        hand.hear(*signs)
        watch.close()
        assert not hand.due
        assert not [call for call in hand.calls if call.open]


@pytest.fixture
def told() -> list[ContactAddress]:
    return []


@pytest.fixture
def suspicion(hand: Hand) -> Iterator[Suspicion]:
    yield Suspicion(hand, WINDOW, lambda: 0.5)
    assert all(call.where == WHERE for call in hand.calls)


def test_a_process_that_leads_a_thousand_jobs_is_watched_once(hand: Hand, suspicion: Suspicion) -> None:
    told: list[str] = []
    followers = [lambda gone, number=number: told.append(f"{gone.port} {number}") for number in range(1000)]
    for each in followers:
        suspicion.follow(WHERE, each)
    assert len(hand.calls) == 1
    suspicion.leave(WHERE, followers.pop())
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert told == [f"{WHERE.port} {number}" for number in range(999)]


def test_a_follower_may_leave_while_it_is_told(hand: Hand, suspicion: Suspicion, told: list[ContactAddress]) -> None:
    def first(gone: ContactAddress) -> None:
        told.append(gone)
        suspicion.leave(gone, first)

    suspicion.follow(WHERE, first)
    suspicion.follow(WHERE, told.append)
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert told == [WHERE, WHERE]


def test_a_follower_that_comes_after_the_end_is_told_only_if_the_process_is_met_again(
    hand: Hand, suspicion: Suspicion, told: list[ContactAddress]
) -> None:
    """Otherwise a process that was wrongly taken for dead would lose its later grants again and again."""
    suspicion.follow(WHERE, lambda _: None)
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    suspicion.follow(WHERE, told.append)
    hand.hear(ProbeEvent.REFUSED)
    assert told == []
    hand.wait()
    hand.hear(ProbeEvent.GREETED, ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert told == [WHERE]


def test_the_connection_is_closed_when_nobody_follows_and_made_anew_for_the_next(
    hand: Hand, suspicion: Suspicion, told: list[ContactAddress]
) -> None:
    suspicion.follow(WHERE, told.append)
    hand.hear(ProbeEvent.GREETED)
    suspicion.leave(WHERE, told.append)
    assert not hand.calls[-1].open
    assert not hand.due
    suspicion.follow(WHERE, told.append)
    assert len(hand.calls) == 2


def test_a_notice_is_passed_on_and_proves_nothing(hand: Hand) -> None:
    notices: list[ReleaseNotice] = []
    suspicion = Suspicion(hand, WINDOW, lambda: 0.5, notices.append)
    told: list[ContactAddress] = []
    suspicion.follow(WHERE, told.append)
    hand.hear(ProbeEvent.GREETED)
    hand.calls[-1].hear(NOTICE)
    hand.calls[-1].hear(NOTICE)
    assert notices == [NOTICE, NOTICE]
    hand.hear(ProbeEvent.BROKEN, ProbeEvent.SILENT)
    assert told == []


def test_who_takes_no_notices_still_follows(hand: Hand, suspicion: Suspicion, told: list[ContactAddress]) -> None:
    suspicion.follow(WHERE, told.append)
    hand.hear(ProbeEvent.GREETED)
    hand.calls[-1].hear(NOTICE)
    hand.hear(ProbeEvent.BROKEN, ProbeEvent.REFUSED)
    assert told == [WHERE]
