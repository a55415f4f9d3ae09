"""Pause: the name of the record's entry that says who has paused a job, when and why. Pure.

The lease alone says *that* a job is paused (:data:`leader.layout.lease.PAUSED`), because only a change of its name
refuses every seizure that was decided before. This entry is for people, and says nothing while the lease does not.
"""

import re
from datetime import UTC, datetime

import msgspec

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.information import PAUSE, Record

_ENTRY = re.compile(rf"{PAUSE}(0|[1-9][0-9]{{0,10}})~([A-Za-z0-9._-]*)~([A-Za-z0-9._-]*)")


class Pause(msgspec.Struct, frozen=True, order=True):
    """One pause."""

    at: int = 0  # seconds since 1970 by the operator's wall clock, for display only; 0 if unknown
    by: str = ""  # who has paused the job; empty if unknown
    reason: str = ""  # as the operator has given it; may be empty

    def __str__(self) -> str:
        since = f" since {datetime.fromtimestamp(self.at, UTC):%Y-%m-%dT%H:%M:%SZ}" if self.at else ""
        by = f" by {self.by}" if self.by else ""
        return f"paused{by}{since}" + (f" ({self.reason})" if self.reason else "")

    @property
    def name(self) -> str:
        """The entry's name; InvalidName if the reason is too long or cannot be shown."""
        return names.with_reason(f"{PAUSE}{self.at}~{names.escape(self.by)}~", self.reason)

    @classmethod
    def parse(cls, name: str) -> "Pause | None":
        """Read a name; None if it was not written here."""
        match = _ENTRY.fullmatch(name)
        try:
            found = cls(int(match[1]), names.unescape(match[2]), names.unescape(match[3])) if match else None
        except InvalidName:
            return None
        return found if found is not None and f"{found.by}{found.reason}".isprintable() else None


def present(record: Record) -> Pause | None:
    """The pause of a job; None if it is not paused. Of several entries the newest one counts."""
    if record.lease is None or not record.lease.paused:
        return None
    return max(filter(None, map(Pause.parse, record.pauses)), default=Pause())
