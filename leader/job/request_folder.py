"""Requests: what operators ask of a job's leader by the job's name, from any host, and how the leader answers.

A request is a versioned file in the leader directory. Its first version is the operator's, and each later one is the
leader's: accepted, then how it ended. So accepting is a compare-and-set behind the fence: a leader that has been fenced
accepts nothing, and a request that is not accepted is not executed. A request names the epoch for which it was made,
and the leaders of later epochs refuse it; or it is kept for the first leader that accepts it, and names its epoch from
then on. An accepted one whose leader ended meanwhile is ``unknown``. A damaged one is logged once and blocks no other.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec

from leader.job.fenced_directory import FencedDirectory
from leader.job.grants import began_after_ms
from leader.job.versioned_files import VersionedBlob, VersionedFiles
from leader.layout.names import HISTORY, REQUESTS
from store.errors import Conflict, Invalid, PermissionDenied, StoreError

KEPT = 20  # answered requests that stay for people to read; older ones are removed
KEPT_FOR_NEXT = 0  # the epoch of a request that is for the first leader that accepts it
MOST_FORGOTTEN = 100  # removed requests that one leader forgets: each has left an empty directory behind


class State(Enum):
    """How far a request has come."""

    ASKED = "asked"
    ACCEPTED = "accepted"  # the leader carries it out
    DONE = "done"
    REFUSED = "refused"  # nothing was done
    FAILED = "failed"
    UNKNOWN = "unknown"  # its leader ended while it carried it out, or its file was damaged meanwhile

    @property
    def final(self) -> bool:
        """Whether this is the end of it."""
        return self not in (State.ASKED, State.ACCEPTED)


class Request(msgspec.Struct, frozen=True):
    """One request.

    Attributes:
        id: unique in the job; asking twice with one id is asking once.
        verb: what is asked for, as ``cancel``; empty if that cannot be read any more.
        epoch: of the leader that is asked; no other one executes it. :data:`KEPT_FOR_NEXT` until one has accepted it.
        by: who asks, for people.
        arguments: of the verb.
        state: how far it has come.
        said: the answer in one sentence, or how far it has come; empty without one.
        version: of its file; 1 as the operator made it.
        result: what came of it, for programs; empty for most verbs.
    """

    id: str
    verb: str
    epoch: int
    by: str = ""
    arguments: dict[str, str] = {}
    state: State = State.ASKED
    said: str = ""
    version: int = 0
    result: dict[str, Any] = {}

    @property
    def damaged(self) -> bool:
        """Whether its file cannot be read: then it has ended, and what was said of it is lost."""
        return not self.verb


_decoder = msgspec.json.Decoder(Request)
_log = logging.getLogger(__name__)


class Requests:
    """The requests of one job, for operators and for its leader; safe to use from several threads."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory
        self._files = VersionedFiles(directory, REQUESTS, "a request")
        self._forgot = False
        self._accepted: set[str] = set()  # that this leader carries out, or has. Any other was an earlier leader's
        self._ended: dict[str, Request] = {}  # found to have ended: not read again while the version stays
        self._told: set[str] = set()  # the unreadable ones that were logged

    # --- operators

    def ask(
        self, identity: str, verb: str, by: str = "", arguments: Mapping[str, str] | None = None, *, kept: bool = False
    ) -> Request:
        """Leave a request for the leader of this epoch, and return it; have that leader look for it afterwards.

        One that is ``kept`` is also for the next leader, if this one does not accept it. With an id that was used
        before, nothing is asked and the present request is returned. Requests are taken and removed in the order of
        their ids.
        """
        epoch = KEPT_FOR_NEXT if kept else self._directory.leader.epoch
        wanted = Request(identity, verb, epoch, by, dict(arguments or {}))
        try:
            return self._put(wanted, State.ASKED, "")
        except Conflict:
            return self.load(wanted.id) or wanted

    def note(self, identity: str, verb: str, by: str, arguments: Mapping[str, str], said: str) -> Request:
        """Leave a request that was done without a leader, for people; with an id of before, return that one."""
        wanted = Request(identity, verb, self._directory.leader.epoch, by, dict(arguments))
        try:
            return self._put(wanted, State.DONE, said)
        except Conflict:
            return self.load(identity) or wanted

    def load(self, identity: str) -> Request | None:
        """Return the request of that id; None if there is none (any more)."""
        try:
            found = self._files.load(identity)
            return None if found is None else _read(identity, found)
        except Invalid as error:
            return _damaged(identity, 0, f"{error}")

    # --- the leader

    def accept(self) -> Iterator[Request]:
        """Accept one open request after the other, and yield it to be carried out and answered by :meth:`answer`."""
        # Those for other epochs are answered here, and so are those that an earlier leader had accepted. One thread
        # calls this.
        answered, own = [], self._directory.leader.epoch
        for found in self._readable():
            if found.state.final:
                answered.append(found.id)
            elif found.epoch in (own, KEPT_FOR_NEXT):
                if found.id not in self._accepted:
                    accepted = self._put(msgspec.structs.replace(found, epoch=own), State.ACCEPTED, "")
                    self._accepted.add(found.id)
                    yield accepted
            elif found.state is State.ASKED:
                self._end(found, State.REFUSED, f"It was meant for epoch {found.epoch}, which is over: ask again.")
            else:
                said = f"Its leader, of epoch {found.epoch}, ended while it carried this out: see `ha host status`."
                self._end(found, State.UNKNOWN, said)
        with suppress(StoreError):  # they are only there to be read
            for identity in answered[:-KEPT]:
                self._files.remove(identity)
            if len(answered) >= KEPT and not self._forgot:  # otherwise none was ever removed
                self._forget_removed()

    def _readable(self) -> Iterator[Request]:
        """Yield the requests in the order of their ids, damaged ones too; log once what cannot be read."""
        versions = self._files.versions()
        self._ended = {each.id: each for each in self._ended.values() if versions.get(each.id) == each.version}
        for identity in sorted(versions):
            try:
                found = self._ended.get(identity) or self.load(identity)
            except PermissionDenied as error:
                self._tell(identity, f"The leader may not read it, and does nothing about it: {error}")
                continue
            if found is not None:
                if found.damaged:
                    self._tell(identity, found.said)
                elif found.state.final:
                    self._ended[identity] = found
                yield found

    def _tell(self, identity: str, said: str) -> None:
        if identity not in self._told:
            self._told.add(identity)
            _log.warning("%s: request %s: %s", self._directory.job, identity, said)

    def _forget_removed(self) -> None:
        """Forget, once, the requests that earlier leaders have removed."""
        # Those of this leader stay: a request of it that the store executes late would be a new one without them.
        self._forgot = True
        began_ms = began_after_ms(self._directory.list(HISTORY), self._directory.leader.epoch)
        self._files.forget_removals(began_ms, MOST_FORGOTTEN)

    def refuse(self, said: str) -> None:
        """Refuse all open requests."""
        for request in self.accept():
            self.answer(request, State.REFUSED, said)

    def answer(self, request: Request, state: State, said: str = "", result: Mapping[str, Any] | None = None) -> None:
        """Write how a request has ended, or, with :attr:`State.ACCEPTED`, how far it has come."""
        self._end(request, state, said, result)

    def _end(self, request: Request, state: State, said: str, result: Mapping[str, Any] | None = None) -> None:
        present = self.load(request.id) or request
        with suppress(Conflict):  # it has been answered already
            self._put(msgspec.structs.replace(request, version=present.version), state, said, result)

    def _put(self, request: Request, state: State, said: str, result: Mapping[str, Any] | None = None) -> Request:
        wanted = msgspec.structs.replace(request, state=state, said=said, version=0, result=dict(result or {}))
        version = self._files.put(request.id, msgspec.json.encode(wanted), request.version)
        return msgspec.structs.replace(wanted, version=version)


def _read(identity: str, found: VersionedBlob) -> Request:
    try:
        read = _decoder.decode(found.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _damaged(identity, found.version, f"{error}")
    if read.id != identity or not read.verb:
        return _damaged(identity, found.version, "it is that of another one")
    return msgspec.structs.replace(read, version=found.version)


def _damaged(identity: str, version: int, why: str) -> Request:
    """Return what is said of a request with an unreadable file: a first version was not accepted."""
    state, ended = State.UNKNOWN, "it is not known what came of it: see `ha host status`"
    if version == 1:
        state, ended = State.REFUSED, "nothing was done"
    said = f"Its file is damaged ({why}); {ended}, and ask again with another id."
    return Request(identity, "", 0, state=state, said=said, version=version)
