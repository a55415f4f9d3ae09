"""Announcement: a new leader publishes its endpoints, its contact, and a line of history."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from leader.election.events import Delete, MakeDirectory, Rename
from leader.layout.contact import ContactAddress, ContactEntry
from leader.layout.information import EndpointEntry, LeaderInformation, check_endpoints, endpoint_entries
from leader.layout.names import ADOPTED, HISTORY, RECORD, LeaderDirectory

Entry = EndpointEntry | ContactEntry

VERSIONS_SKIPPED = 1000  # that an adopted leadership leaves out: its former process may have sent some that come late


@dataclass(frozen=True, slots=True)
class Change:
    """One command and what it changes among the entries of the record; the line of history changes none of them."""

    command: Rename | MakeDirectory | Delete
    added: Entry | None = None
    removed: Entry | None = None


class Announcement:
    """Compares the entries as wanted with those in the store, and gives one change at a time until both agree."""

    def __init__(self, contact: ContactAddress | None = None) -> None:
        """Announce nothing yet; ``contact`` is where this process listens, None if it does not."""
        self.information: LeaderInformation | None = None
        self._contact = contact
        self._entries: frozenset[Entry] = frozenset()
        self._published_version = self._versions_used = 0
        self._history = ""

    def begin(self, directory: LeaderDirectory, reason: str, contender: str) -> None:
        """A leadership begins, or is adopted: nothing is confirmed yet."""
        self.information = None
        self._published_version = self._versions_used = 0
        if reason == ADOPTED:
            own = (each for each in self._entries if isinstance(each, EndpointEntry) and each.epoch == directory.epoch)
            self._versions_used = VERSIONS_SKIPPED + max((each.version for each in own), default=0)
        self._history = f"{directory.name}/{HISTORY}/{directory.name}~{reason}~{contender}"

    def on_listed(self, entries: frozenset[Entry]) -> None:
        """The entries as the store just listed them."""
        self._entries = entries

    def confirm(self, job: str, directory: LeaderDirectory, endpoints: dict[str, str]) -> None:
        """Publish these endpoints. The same ones again change nothing, but are reported as published once more."""
        known = self.information
        if known is not None and dict(known.endpoints) == endpoints:
            self._published_version = 0
            return
        version = (known.version if known else self._versions_used) + 1
        self.information = LeaderInformation(
            job, directory.epoch, directory.session_id, check_endpoints(endpoints), version
        )

    def next_change(self, directory: LeaderDirectory) -> Change | None:
        """The next change to make; None if there is none."""
        # The contact comes after the endpoints: readers wait for those.
        wanted = endpoint_entries(self.information) if self.information else frozenset[EndpointEntry]()
        own = ContactEntry(directory.epoch, directory.session_id, self._contact) if self._contact else None
        endpoints = sorted(each for each in self._entries if isinstance(each, EndpointEntry))
        contacts = [each for each in self._entries if isinstance(each, ContactEntry)]
        if missing := sorted(wanted.difference(endpoints)):
            return _add(directory, missing[0], endpoints)
        if own is not None and own not in contacts:
            return _add(directory, own, contacts)
        if self._history:
            return Change(MakeDirectory(self._history))
        stale: list[Entry] = [each for each in contacts if own is not None and each != own]
        stale += [each for each in endpoints if wanted and each not in wanted]
        if stale:
            return Change(Delete(f"{directory.name}/{RECORD}/{stale[0].name}"), removed=stale[0])
        return None

    def on_made(self, change: Change) -> None:
        """The change is in the store."""
        if change.added is None and change.removed is None:
            self._history = ""
        self._entries = (self._entries - {change.removed}) | ({change.added} if change.added else frozenset())

    def on_unknown(self, change: Change) -> None:
        """It is unknown whether the change was made, and a list cannot tell if it stays: publish a new version."""
        # A contact stays true even if the store forgets it: no other process could have written it.
        if isinstance(change.added, EndpointEntry) and self.information is not None:
            self.information = msgspec.structs.replace(self.information, version=self.information.version + 1)

    def on_refused(self, change: Change) -> None:
        """The store refused the change. A line of history is not worth a second try; the endpoints are."""
        if change.added is None and change.removed is None:
            self._history = ""

    def newly_published(self) -> LeaderInformation | None:
        """The information once the store holds all of it; reported once for each time that it was confirmed."""
        information = self.information
        if information is None or information.version == self._published_version:
            return None
        if endpoint_entries(information) - self._entries:
            return None
        self._published_version = information.version
        return information


def _add(directory: LeaderDirectory, entry: Entry, present: Sequence[Entry]) -> Change:
    """Add an entry. One of an earlier epoch is worthless by now, so one rename makes it the new one."""
    record = f"{directory.name}/{RECORD}"
    path = f"{record}/{entry.name}"
    old = next((each for each in present if each.epoch < directory.epoch), None)
    if old is not None:
        return Change(Rename(f"{record}/{old.name}", path), entry, old)
    return Change(MakeDirectory(path), entry)
