"""Suspicion: notices by a connection that the process that holds a lease is gone. No I/O.

When a process dies, its connections end and its host refuses the next one. That takes milliseconds, while its ZooKeeper
session lives on for seconds. A process counts as gone only after these three events, in this order:

1. The process has greeted at this very address, and as the process that it is. 2. That connection broke: an end or a
reset. A process that dies sends one, but so does much else. 3. Soon after, its host refuses a connection, or another
process greets there: the process no longer listens.

Silence means nothing, however long it lasts: a paused process is silent, and so is one that is cut off. A refusal by a
host that has never shown the process means nothing either: the address may lead somewhere else. A process also says on
these connections that it has released a lease; that is passed on, and proves nothing.
"""

from collections.abc import Callable

from leader.election.ports import Heard, LivenessProbe, ProbeEnvironment, ProbeEvent, Timer
from leader.layout.contact import ContactAddress, ReleaseNotice
from leader.timing import PAST

OnGone = Callable[[ContactAddress], None]  # takes the contact whose process is gone
OnReleased = Callable[[ReleaseNotice], None]  # takes what a process says of a lease of its own
OnAnswer = Callable[[bool], None]  # takes whether the process lives
FIRST_RETRY = 0.02  # seconds until the first probe after a connection broke; the pause doubles with every further one
SLOWEST_RETRY = 30.0  # seconds between two probes of a process that does not answer, at most
STEADY = 1.0  # seconds a connection must last for a quick probe after its end; others are probed ever more slowly


ANSWER_WITHIN = 0.2
"""Seconds in which a process that is asked whether it lives has to greet; the loss of a host takes that longer."""


class ProcessMonitor:
    """Probes one process again and again; reports once that the process is gone, and ends with that."""

    def __init__(
        self,
        environment: ProbeEnvironment,  # connects
        address: ContactAddress,  # of the process
        # seconds. A refusal counts for so long after a connection broke, because addresses move from host to host.
        # After as long a second connection is made beside one that holds, because that one may be broken at the other
        # end only, and this also before a greeting. The one that is greeted on last is kept.
        window: float,
        # Gives a random number from 0 to 1, so that the standbys of a process do not connect all at once.
        jitter: Callable[[], float],
        on_gone: Callable[[], None],  # called at most once
        on_released: OnReleased | None = None,  # called with every notice
    ) -> None:
        self._environment, self._address, self._window = environment, address, window
        self._jitter, self._on_gone, self._on_released = jitter, on_gone, on_released
        self._probe: _Probe | None = None
        self._renewal: _Probe | None = None
        self._timer: Timer | None = None
        self._met = False  # whether the process has greeted at this address
        self._greeted_at = PAST
        self._broke_at: float | None = None
        self._tries = 0
        self._start_probe()

    def close(self) -> None:
        """Close all connections, and stop reporting."""
        for each in (self._probe, self._renewal):
            if each is not None:
                each.close()
        self._probe = self._renewal = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_probe(self) -> None:
        self._probe = _Probe(self._environment, self._address, self._on_event)
        self._call_in(self._window, self._renew)

    def _renew(self) -> None:
        if self._renewal is not None:
            self._renewal.close()
        self._renewal = _Probe(self._environment, self._address, self._on_event)
        self._call_in(self._window, self._renew)

    def _on_event(self, probe: "_Probe", event: Heard) -> None:
        if isinstance(event, ReleaseNotice):
            if self._on_released is not None:
                self._on_released(event)
            return
        now = self._environment.now()
        if probe is self._renewal:
            self._renewal = None
            if event is ProbeEvent.GREETED and self._probe is not None:
                self._reset_tries_if_steady(now)
                self._probe.close()
                self._probe = probe
        elif event is not ProbeEvent.GREETED:
            self._on_end(event, now)
            return
        if event is ProbeEvent.GREETED:
            self._met, self._greeted_at, self._broke_at = True, now, None

    def _on_end(self, event: ProbeEvent, now: float) -> None:
        self.close()
        if self._met and self._broke_at is None:
            self._broke_at = now
            self._reset_tries_if_steady(now)
        elif event in (ProbeEvent.REFUSED, ProbeEvent.ANOTHER_PROCESS) and self._broke_at is not None:
            if now - self._broke_at <= self._window:
                self._on_gone()
                return
            self._met, self._broke_at = False, None
        self._call_in(min(SLOWEST_RETRY, FIRST_RETRY * 2.0**self._tries), self._start_probe)
        self._tries = min(self._tries + 1, 30)

    def _reset_tries_if_steady(self, now: float) -> None:
        if now - self._greeted_at >= STEADY:
            self._tries = 0

    def _call_in(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds *= 0.5 + self._jitter()
        self._timer = self._environment.call_at(self._environment.now() + seconds, then)


class _Probe:
    """One connection, which passes itself along with each event."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        address: ContactAddress,
        on_event: Callable[["_Probe", Heard], None],
    ) -> None:
        self._connection: LivenessProbe = environment.probe(address, lambda event: on_event(self, event))

    def close(self) -> None:
        self._connection.close()


class Suspicion:
    """One monitor for each process, whatever the number of jobs that it leads."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        window: float,
        jitter: Callable[[], float],
        on_released: OnReleased | None = None,
    ) -> None:
        """Start without monitors; see :class:`ProcessMonitor` for the arguments."""
        self._environment, self._window, self._jitter, self._on_released = environment, window, jitter, on_released
        self._monitors: dict[ContactAddress, ProcessMonitor] = {}
        self._followers: dict[ContactAddress, list[OnGone]] = {}
        self._asking: dict[ContactAddress, list[OnAnswer]] = {}

    def follow(self, contact: ContactAddress, on_gone: OnGone) -> None:
        """Report from now on if the process is gone: on the environment's thread, and never before this returns."""
        # A follower that comes too late is told nothing, because its monitor has to meet the process first: one that is
        # granted a lease after that is not gone at all.
        self._followers.setdefault(contact, []).append(on_gone)
        if contact not in self._monitors:
            report = lambda: self._report(contact)  # noqa: E731  # the contact's, for as long as the monitor lasts
            self._monitors[contact] = ProcessMonitor(
                self._environment, contact, self._window, self._jitter, report, self._on_released
            )

    def leave(self, contact: ContactAddress, on_gone: OnGone) -> None:
        """Stop reporting; the connection is closed when its last follower leaves."""
        followers = self._followers[contact]
        followers.remove(on_gone)
        if not followers:
            del self._followers[contact]
            if (monitor := self._monitors.pop(contact, None)) is not None:
                monitor.close()

    def ask(self, contact: ContactAddress, on_answer: OnAnswer) -> None:
        """Ask on a new connection whether the process lives; answers once, never before this returns."""
        # Everybody who asks at the same time shares the connection.
        waiting = self._asking.setdefault(contact, [])
        waiting.append(on_answer)
        if len(waiting) > 1:
            return

        def answered(event: Heard) -> None:
            timer.cancel()
            probe.close()
            for each in self._asking.pop(contact):
                each(event is ProbeEvent.GREETED)

        probe = self._environment.probe(contact, answered)
        when = self._environment.now() + ANSWER_WITHIN
        timer = self._environment.call_at(when, lambda: answered(ProbeEvent.SILENT))

    def _report(self, contact: ContactAddress) -> None:
        self._monitors.pop(contact, None)  # it has ended
        for on_gone in list(self._followers.get(contact, ())):
            on_gone(contact)
