"""Bar: a contender that is not to take a job over for a while, as the name of one entry of the record. Pure.

Every standby lists the record before a seizure, and a claim takes the bar along: it costs no call and lasts.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.hosts import covers
from leader.layout.information import BAR, Record
from leader.layout.lease import check_contender
from leader.timing import PAST

_ENTRY = re.compile(rf"{BAR}([^~]+)~(0|[1-9][0-9]{{0,10}})~([A-Za-z0-9._-]*)~([A-Za-z0-9._-]*)")


class Bar(msgspec.Struct, frozen=True, order=True):
    """One contender that is barred, or one host."""

    contender: str  # its name, or its host's: then all processes are barred that have named themselves there
    until: int  # seconds since 1970 by the wall clock, when the bar ends by itself
    by: str = ""  # who has barred it; may be empty
    reason: str = ""  # as that one has given it; may be empty

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        until = f"{datetime.fromtimestamp(self.until, UTC):%Y-%m-%dT%H:%M:%SZ}"
        return f"barred{by} until {until}" + (f" ({self.reason})" if self.reason else "")

    @property
    def name(self) -> str:
        """The entry's name; InvalidName if the contender has no valid name, or the reason cannot be shown."""
        return names.with_reason(
            f"{BAR}{check_contender(self.contender)}~{self.until}~{names.escape(self.by)}~", self.reason
        )

    @classmethod
    def parse(cls, name: str) -> "Bar | None":
        """Read a name; None if it was not written here."""
        match = _ENTRY.fullmatch(name)
        try:
            found = match and cls(
                check_contender(match[1]), int(match[2]), names.unescape(match[3]), names.unescape(match[4])
            )
        except InvalidName:
            return None
        return found if found and f"{found.by}{found.reason}".isprintable() else None


def bars(record: Record) -> dict[str, Bar]:
    """All bars of a job by contender, past ones too; of several for one contender the last to end."""
    return {each.contender: each for each in sorted(filter(None, map(Bar.parse, record.bars)))}


def bar_of(found: Mapping[str, Bar], contender: str) -> Bar | None:
    """The bar that holds for a contender: of its own name or of its host, the last to end."""
    return max((each for name, each in found.items() if covers(name, contender)), default=None, key=lambda it: it.until)


def barred_until(record: Record, contender: str, now: float, wall: float) -> float:
    """When a contender may take over again: seconds of the clock of ``now``; the distant past if it is not barred."""
    # `wall` is seconds since 1970 at that moment. A bar is an operator's order and no promise to anybody, so it is
    # enough that the clocks of the hosts are right to a minute or so.
    bar = bar_of(bars(record), contender)
    return PAST if bar is None or bar.until <= wall else now + bar.until - wall
