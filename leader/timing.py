"""All durations of the protocol, and the inequalities that must hold between them."""

import math
from dataclasses import dataclass, fields

from leader.errors import InvalidSettings

HEARD_AFTER = 1 / 4
"""Share of the ZooKeeper session timeout after which the quorum knows what one of its servers has heard.

A server says which clients it has heard when it answers the leader's pings, and those come every half tick. The
smallest session timeout that a server grants is two ticks.
"""

SETTLED_AFTER = 1 / 2
"""Share of the session timeout for which a session must be confirmed without a gap before it is believed.

After a silence the quorum may be about to end the session. If its leader stalls just then, it first answers what was
asked, then ends the session, and hears of the client only afterwards. So one round of pings is not enough; this is two.
"""

RENEWALS_PER_TTL = 3  # as etcd's clients do: one lost renewal is survived
CONFIRMATIONS_PER_SESSION = 6  # reads of the own node: one slow answer is survived within `SESSION_SHARE`


def shared_confirmations(drift: float) -> float:
    """Share of the session timeout from one confirmation of a host's session to the next."""
    # A confirmation proves what is HEARD_AFTER older, so one that begins just after that proves the one before it. As
    # much is left at each of them as with six in a session timeout, with a third fewer requests.
    return HEARD_AFTER * (1 + 2 * drift)


# Left at each confirmation, which proves the last but one (see `leader.election.attestation`).
SESSION_SHARE = 1 - 2 / CONFIRMATIONS_PER_SESSION


NEVER = float("inf")  # a time that never comes
PAST = float("-inf")  # a time that has always passed
SHORTEST = 0.001
LONGEST = 999_999
"""Seconds, eleven days: the name of a lease holds its time to live in milliseconds, with at most nine digits."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds."""

    # time to live of a lease that HDFS alone carries, and so the outage after a crash without ZooKeeper
    short_ttl: float = 6.0
    # time to live of a lease that ZooKeeper attests. Others wait for it only if the leader and ZooKeeper die together.
    # A leader that cannot write to HDFS stops after it
    long_ttl: float = 60.0
    session_timeout: float = 10.0  # requested of ZooKeeper. After a lost host its job has no leader for so long
    # a file-system call is abandoned after it. Default: 1.5, or less if the other durations demand it
    call_timeout: float = 0.0
    # leadership ends so long before the belief does, for work to be stopped. Default: as call_timeout
    stop_margin: float = 0.0
    drift: float = 0.01  # greatest relative error of any clock's rate
    hand_over: float = 3.0  # how long a leader that stepped down leaves the job to others before it contends again

    def __post_init__(self) -> None:
        scale = min(1.5, 0.15 * self.session_timeout, self.short_ttl / 4)
        for name in ("call_timeout", "stop_margin"):
            if getattr(self, name) == 0.0:
                object.__setattr__(self, name, scale)
        self._check()

    def _check(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "drift" and not SHORTEST <= value <= LONGEST:
                raise InvalidSettings(
                    f"{each.name} is {value:g} s: it must be from {SHORTEST:g} to {LONGEST:,} seconds."
                )
        if not 0 < self.drift <= 0.1:  # noqa: PLR2004  # a clock that errs by more cannot be used
            raise InvalidSettings(f"drift is {self.drift:g}: it must be greater than 0 and not more than 0.1.")
        lived = self.short_ttl * (1 - self.drift) - self.stop_margin
        needed = self.renewal + self.call_timeout
        if needed >= lived:
            raise InvalidSettings(
                f"short_ttl ({self.short_ttl:g} s) and call_timeout ({self.call_timeout:g} s) clash: one lost renewal "
                f"would end the leadership, because a third of short_ttl plus call_timeout is {needed:g} s and "
                f"short_ttl less stop_margin is {lived:g} s; raise short_ttl or lower call_timeout."
            )
        trusted = self.session_timeout * (SESSION_SHARE - self.drift) - self.stop_margin
        noticed = 2 * self.session_timeout / CONFIRMATIONS_PER_SESSION + self.call_timeout
        if noticed >= trusted:
            raise InvalidSettings(
                f"session_timeout ({self.session_timeout:g} s) and call_timeout ({self.call_timeout:g} s) clash: a "
                f"ZooKeeper that hangs is noticed and answered in {noticed:g} s, and two thirds of session_timeout "
                f"less stop_margin are {trusted:g} s; raise session_timeout or lower call_timeout."
            )
        for longer, shorter in (("long_ttl", "short_ttl"), ("long_ttl", "session_timeout")):
            if getattr(self, longer) <= getattr(self, shorter):
                raise InvalidSettings(
                    f"{longer} ({getattr(self, longer):g} s) and {shorter} ({getattr(self, shorter):g} s) clash: "
                    f"{longer} must be the longer one."
                )

    @property
    def short_ttl_ms(self) -> int:
        """``short_ttl`` as it is written into a lease, in milliseconds."""
        return round(self.short_ttl * 1000)

    @property
    def adopted_ttl_ms(self) -> int:
        """Time to live of a lease that is taken up, as written: what the dead process believed ends before that."""
        # ZooKeeper may have attested its lease, for as long as its session was sure to live.
        return max(self.short_ttl_ms, math.ceil(self.session_timeout * 1000))

    @property
    def long_ttl_ms(self) -> int:
        """``long_ttl`` as it is written into a lease, in milliseconds."""
        return round(self.long_ttl * 1000)

    @property
    def renewal(self) -> float:
        """How often a leader renews a lease that HDFS alone carries, in seconds."""
        return self.short_ttl / RENEWALS_PER_TTL

    @property
    def courtesy(self) -> float:
        """How long a released lease is left to others, in seconds: until all that lack ZooKeeper have looked."""
        return max(self.hand_over, self.renewal + self.retry)

    @property
    def poll(self) -> float:
        """Seconds between a standby's reads of a lease that it gets no notices of."""
        # A twelfth of the short time to live keeps the guarantee of a takeover within short_ttl + 1 s.
        return self.short_ttl / 12

    @property
    def retry(self) -> float:
        """Least time between two tries of the same operation, in seconds."""
        return self.short_ttl / 24
