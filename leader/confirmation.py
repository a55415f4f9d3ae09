"""What a leader writes about itself once it is granted: its endpoints, then a line of history."""

from dataclasses import dataclass

import msgspec

from leader.events import Delete, MakeDirectory, Rename
from leader.information import EndpointEntry, LeaderInformation, check_endpoints, endpoint_entries
from leader.names import HISTORY, RECORD, LeaderDirectory


@dataclass(frozen=True, slots=True)
class Change:
    """One command, and what it changes among the endpoint entries; the history line changes none."""

    command: Rename | MakeDirectory | Delete
    added: EndpointEntry | None = None
    removed: EndpointEntry | None = None


class Confirmation:
    """The endpoints as wanted and as they are in the store; gives one change at a time until both agree."""

    def __init__(self) -> None:
        self.information: LeaderInformation | None = None
        self._entries: frozenset[EndpointEntry] = frozenset()
        self._announced = 0
        self._history = ""

    def begin(self, directory: LeaderDirectory, reason: str, contender: str) -> None:
        """A new leadership: nothing is confirmed yet."""
        self.information = None
        self._announced = 0
        self._history = f"{directory.name}/{HISTORY}/{directory.name}~{reason}~{contender}"

    def see(self, entries: frozenset[EndpointEntry]) -> None:
        """The entries as the store just listed them."""
        self._entries = entries

    def confirm(self, job: str, directory: LeaderDirectory, endpoints: dict[str, str]) -> None:
        """The leader wants these endpoints published; the same again are only announced again, to whoever waits for it.

        Raises:
            InvalidName: an endpoint cannot be stored.
        """
        known = self.information
        if known is not None and dict(known.endpoints) == endpoints:
            self._announced = 0
            return
        version = known.version + 1 if known else 1
        self.information = LeaderInformation(
            job, directory.epoch, directory.session_id, check_endpoints(endpoints), version
        )

    def next(self, directory: LeaderDirectory) -> Change | None:
        """The next change to make; None if there is none."""
        wanted = endpoint_entries(self.information) if self.information else frozenset()
        record = f"{directory.name}/{RECORD}"
        if missing := sorted(wanted - self._entries):
            # An entry of an earlier epoch says nothing any more, so it can become ours in one operation.
            old = [entry for entry in sorted(self._entries) if entry.epoch < directory.epoch]
            path = f"{record}/{missing[0].name}"
            if old:
                return Change(Rename(f"{record}/{old[0].name}", path), missing[0], old[0])
            return Change(MakeDirectory(path), missing[0])
        if self._history:
            return Change(MakeDirectory(self._history))
        if wanted and (stale := sorted(self._entries - wanted)):
            return Change(Delete(f"{record}/{stale[0].name}"), removed=stale[0])
        return None

    def made(self, change: Change) -> None:
        """The change is in the store."""
        if change.added is None and change.removed is None:
            self._history = ""
        self._entries = (self._entries - {change.removed}) | ({change.added} if change.added else frozenset())

    def doubted(self, change: Change) -> None:
        """Nobody knows whether the change was made, and a list would not tell whether it stays: publish anew."""
        if change.added is not None and self.information is not None:
            self.information = msgspec.structs.replace(self.information, version=self.information.version + 1)

    def refused(self, change: Change) -> None:
        """The store refused the change. A line for people is not worth a second try; the endpoints are."""
        if change.added is None and change.removed is None:
            self._history = ""

    def announce(self) -> LeaderInformation | None:
        """The information, once for each time it was confirmed, when the store holds all of it."""
        information = self.information
        if information is None or information.version == self._announced:
            return None
        if endpoint_entries(information) - self._entries:
            return None
        self._announced = information.version
        return information
