"""What a standby makes of a connection to the leader's process: when that is gone, and when nothing follows from it."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from leader.environment import Sign
from leader.suspicion import FIRST_RETRY, SLOWEST_RETRY, STEADY, Suspicion, Watch
from leader.whereabouts import Whereabouts, encode

WHERE = Whereabouts("10.0.0.1", 4711, "5eed" * 8)
TOKEN = "cafe0123-1001"  # noqa: S105  # the name of a node
WINDOW = 10.0
ENDS = [Sign.BROKEN, Sign.REFUSED, Sign.NOTHING]


class Call:
    """A connection, and the other end of it."""

    def __init__(self, where: Whereabouts, heard: Callable[[Sign], None]) -> None:
        self.where, self._heard = where, heard
        self.open = True

    def close(self) -> None:
        self.open = False

    def hear(self, sign: Sign) -> None:
        assert self.open, "nothing is heard of a connection that is closed"
        self.open = sign is Sign.ITSELF
        self._heard(sign)


class Later:
    """A call in the future."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when, self.callback = when, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Hand:
    """Plays the network by hand."""

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

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Call:
        self.calls.append(Call(where, heard))
        return self.calls[-1]

    # --- what the tests do

    def watch(self, jitter: float = 0.5) -> Watch:
        return Watch(self, WHERE, WINDOW, lambda: jitter, self._gone)

    def _gone(self) -> None:
        self.gone += 1

    @property
    def due(self) -> list[Later]:
        return [each for each in self.timers if not each.cancelled]

    def wait(self) -> float:
        """Let the next timer go off; returns after how many seconds."""
        (timer,) = self.due
        self.timers.clear()
        waited, self.at = timer.when - self.at, timer.when
        timer.callback()
        return waited

    def hear(self, *signs: Sign) -> None:
        """The newest connection hears these, each of which but greetings ends it and is followed by the next call."""
        for number, sign in enumerate(signs):
            if number and signs[number - 1] is not Sign.ITSELF:
                self.wait()
            self.calls[-1].hear(sign)


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.mark.parametrize("sign", [Sign.REFUSED, Sign.ANOTHER])
def test_an_end_and_then_a_refusal_is_the_end_of_the_process(hand: Hand, sign: Sign) -> None:
    hand.watch()
    hand.hear(Sign.ITSELF)
    hand.at += 3600.0
    hand.hear(Sign.BROKEN)
    assert hand.gone == 0
    assert hand.wait() == pytest.approx(FIRST_RETRY)
    hand.hear(sign)
    assert hand.gone == 1
    assert not hand.due, "and that is the end of the watch"
    assert not [call for call in hand.calls if call.open]


@pytest.mark.parametrize("signs", list(itertools.product([Sign.BROKEN, Sign.NOTHING], repeat=4)))
def test_silence_and_broken_connections_mean_nothing(hand: Hand, signs: tuple[Sign, ...]) -> None:
    hand.watch()
    hand.hear(Sign.ITSELF, *signs)
    assert hand.gone == 0
    hand.wait()
    hand.hear(Sign.ITSELF)
    assert hand.gone == 0


@pytest.mark.parametrize("signs", list(itertools.product([*ENDS, Sign.ANOTHER], repeat=3)))
def test_a_host_that_has_never_shown_the_process_cannot_say_that_it_is_gone(hand: Hand, signs: tuple[Sign]) -> None:
    hand.watch()
    hand.hear(*signs, Sign.REFUSED)
    assert hand.gone == 0


def test_a_connection_that_ends_before_the_greeting_tells_only_that_there_is_somebody(hand: Hand) -> None:
    """So it is while a guard holds the socket of a process that is gone: nobody greets until the command is gone."""
    hand.watch()
    hand.hear(Sign.ITSELF, Sign.BROKEN, Sign.BROKEN, Sign.NOTHING)
    assert hand.gone == 0
    hand.wait()
    hand.hear(Sign.REFUSED)
    assert hand.gone == 1


def test_a_refusal_counts_only_soon_after_the_end(hand: Hand) -> None:
    hand.watch()
    hand.hear(Sign.ITSELF, Sign.BROKEN)
    hand.wait()
    hand.at += WINDOW
    hand.hear(Sign.REFUSED, Sign.REFUSED, Sign.BROKEN, Sign.REFUSED)
    assert hand.gone == 0
    hand.wait()
    hand.hear(Sign.ITSELF, Sign.BROKEN, Sign.REFUSED)
    assert hand.gone == 1, "once it has been met again"


def test_who_does_not_answer_is_called_ever_more_seldom_and_for_ever(hand: Hand) -> None:
    hand.watch()
    waits = []
    for _ in range(40):
        hand.calls[-1].hear(Sign.NOTHING)
        waits.append(round(hand.wait(), 6))
    assert waits[:4] == pytest.approx([FIRST_RETRY * 2**n for n in range(4)])
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(SLOWEST_RETRY)


def test_who_hangs_up_at_once_is_not_hurried(hand: Hand) -> None:
    hand.watch()
    waits = []
    for lasted in (STEADY, 0.0, 0.0, STEADY):
        hand.hear(Sign.ITSELF)
        hand.at += lasted
        hand.hear(Sign.BROKEN)
        waits.append(hand.wait() / FIRST_RETRY)
    assert waits == pytest.approx([1, 2, 4, 1])


@pytest.mark.parametrize("jitter", [0.0, 0.25, 1.0])
def test_standbys_do_not_call_all_at_once(hand: Hand, jitter: float) -> None:
    hand.watch(jitter)
    hand.hear(Sign.NOTHING)
    assert hand.wait() == pytest.approx(FIRST_RETRY * (0.5 + jitter))


def test_a_connection_that_holds_is_made_anew_now_and_then(hand: Hand) -> None:
    """It may be broken at one end only, and nothing is ever sent on it that would show that."""
    hand.watch()
    hand.hear(Sign.ITSELF)
    for _ in range(3):
        assert hand.wait() == pytest.approx(WINDOW)
        old, new = hand.calls[-2:]
        assert old.open, "until the new one is there"
        new.hear(Sign.ITSELF)
        assert (old.open, new.open) == (False, True)
    hand.at += 1.0
    hand.calls[-1].hear(Sign.BROKEN)
    hand.wait()
    hand.hear(Sign.REFUSED)
    assert hand.gone == 1


def test_who_does_not_greet_is_called_again_beside_the_connection_that_waits(hand: Hand) -> None:
    """Found by the simulator: the greeting of a leader that had been paused was lost, and awaited ever after."""
    hand.watch()
    for _ in range(3):
        assert hand.wait() == pytest.approx(WINDOW)
        assert [call.open for call in hand.calls] == [True, *[False] * (len(hand.calls) - 2), True]
    first, *_, new = hand.calls
    new.hear(Sign.ITSELF)
    assert (first.open, new.open) == (False, True)
    assert hand.wait() == pytest.approx(WINDOW)
    new.hear(Sign.BROKEN)
    hand.wait()
    hand.hear(Sign.REFUSED)
    assert hand.gone == 1


def test_who_is_paused_for_long_greets_on_the_connection_that_has_waited(hand: Hand) -> None:
    """The others wait in its queue until that is full, and nobody would be greeted soon if the first had hung up."""
    hand.watch()
    hand.wait()
    first, second = hand.calls
    second.hear(Sign.NOTHING)
    assert hand.wait() == pytest.approx(WINDOW), "a call that fails ends nothing, and does not hurry the next one"
    first.hear(Sign.ITSELF)
    hand.at += STEADY
    first.hear(Sign.BROKEN)
    assert not [call for call in hand.calls if call.open]
    assert hand.wait() == pytest.approx(FIRST_RETRY)
    hand.hear(Sign.REFUSED)
    assert hand.gone == 1


def test_who_dies_just_after_a_renewal_is_called_at_once(hand: Hand) -> None:
    """Found by the simulator: what counted was how long the new connection had lasted, not how long there was one."""
    hand.watch()
    hand.hear(*[Sign.NOTHING] * 6, Sign.ITSELF)
    hand.wait()
    hand.calls[-1].hear(Sign.ITSELF)
    hand.at += STEADY / 2
    hand.calls[-1].hear(Sign.BROKEN)
    assert hand.wait() == pytest.approx(FIRST_RETRY)


@pytest.mark.parametrize("sign", [*ENDS, Sign.ANOTHER])
def test_a_renewal_that_fails_says_nothing_while_the_old_connection_holds(hand: Hand, sign: Sign) -> None:
    hand.watch()
    hand.hear(Sign.ITSELF)
    hand.wait()
    old, new = hand.calls[-2:]
    new.hear(sign)
    assert hand.gone == 0
    assert old.open
    assert hand.wait() == pytest.approx(WINDOW)
    old.hear(Sign.BROKEN)
    assert not hand.calls[-1].open, "there is one call at a time, but for renewals"
    hand.wait()
    hand.hear(Sign.REFUSED)
    assert hand.gone == 1


def test_nothing_happens_once_it_is_closed(hand: Hand) -> None:
    for signs in ((), (Sign.ITSELF,), (Sign.ITSELF, Sign.BROKEN), (Sign.NOTHING,)):
        watch = hand.watch()
        hand.hear(*signs)
        watch.close()
        assert not hand.due
        assert not [call for call in hand.calls if call.open]


# --- one watch for all jobs


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def suspicion(hand: Hand) -> Iterator[Suspicion]:
    yield Suspicion(hand, WINDOW, lambda: 0.5)
    assert all(call.where == WHERE for call in hand.calls)


def test_a_process_that_leads_a_thousand_jobs_is_watched_once(
    hand: Hand, suspicion: Suspicion, told: list[str]
) -> None:
    followers = [lambda token, number=number: told.append(f"{token} {number}") for number in range(1000)]
    for each in followers:
        suspicion.follow(TOKEN, encode("a", WHERE), each)
    assert len(hand.calls) == 1
    suspicion.leave(TOKEN, followers.pop())
    hand.hear(Sign.ITSELF, Sign.BROKEN, Sign.REFUSED)
    assert told == [f"{TOKEN} {number}" for number in range(999)]


def test_a_follower_may_leave_while_it_is_told(hand: Hand, suspicion: Suspicion, told: list[str]) -> None:
    def first(token: str) -> None:
        told.append(token)
        suspicion.leave(token, first)

    suspicion.follow(TOKEN, encode("a", WHERE), first)
    suspicion.follow(TOKEN, encode("a", WHERE), told.append)
    hand.hear(Sign.ITSELF, Sign.BROKEN, Sign.REFUSED)
    assert told == [TOKEN, TOKEN]


def test_who_comes_after_the_end_is_not_told(hand: Hand, suspicion: Suspicion, told: list[str]) -> None:
    """Else a process that was taken for gone by mistake would lose what it is granted later, again and again."""
    suspicion.follow(TOKEN, encode("a", WHERE), lambda _: None)
    hand.hear(Sign.ITSELF, Sign.BROKEN, Sign.REFUSED)
    suspicion.follow(TOKEN, encode("a", WHERE), told.append)
    assert told == []
    assert len(hand.calls) == 2


def test_the_connection_is_closed_when_nobody_follows_and_made_anew_for_the_next(
    hand: Hand, suspicion: Suspicion, told: list[str]
) -> None:
    suspicion.follow(TOKEN, encode("a", WHERE), told.append)
    hand.hear(Sign.ITSELF)
    suspicion.leave(TOKEN, told.append)
    assert not hand.calls[-1].open
    assert not hand.due
    suspicion.follow(TOKEN, encode("a", WHERE), told.append)
    assert len(hand.calls) == 2


@pytest.mark.parametrize("about", [b"a", b"", b"\xff" * 99, b"a 10.0.0.1 0 " + b"5eed" * 8])
def test_who_does_not_say_where_it_is_is_not_watched(
    hand: Hand, suspicion: Suspicion, told: list[str], about: bytes
) -> None:
    suspicion.follow(TOKEN, about, told.append)
    assert hand.calls == []
    suspicion.leave(TOKEN, told.append)
