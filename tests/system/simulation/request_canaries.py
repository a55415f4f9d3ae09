"""Canaries of requests by name: what a leader carries out, and what it answers."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from leader.errors import Fenced
from leader.job.fenced_directory import FencedDirectory
from leader.job.request_folder import Request, Requests, State
from store.errors import NotFound, StoreError
from tests.system.simulation.canary import L1, Canary, of
from tests.system.simulation.directed import draw_asked

ASKED = frozenset({"ASKED"})

_load, _put, _end, _commit = Requests.load, Requests._put, Requests._end, FencedDirectory.commit


def _put_or_go_on(self: Requests, request: Request, state: State, said: str, *more: object) -> Request:
    if state is not State.ACCEPTED:
        return _put(self, request, state, said, *more)  # type: ignore[arg-type]
    with suppress(StoreError, Fenced):
        return _put(self, request, state, said)
    return msgspec.structs.replace(request, state=state)


def _put_for_whoever_leads(
    self: Requests, request: Request, state: State, said: str, result: Mapping[str, object] | None = None
) -> Request:
    """A kept request that was accepted does not say by whom."""
    kept = state is State.ACCEPTED and self.load(request.id)
    epoch = kept.epoch if kept else request.epoch
    return _put(self, msgspec.structs.replace(request, epoch=epoch), state, said, result)


def _load_as_for_this_epoch(self: Requests, identity: str) -> Request | None:
    found = _load(self, identity)
    return found and msgspec.structs.replace(found, epoch=self._directory.leader.epoch)


def _load_accepted_as_mine(self: Requests, identity: str) -> Request | None:
    found = _load(self, identity)
    return _load_as_for_this_epoch(self, identity) if found and found.state is State.ACCEPTED else found


def _commit_or_see(self: FencedDirectory, source: str, entry: str, sequence: int = 1) -> str:
    del sequence
    for _ in range(2):
        outcome = self._try(source, entry)
        if not outcome.unknown:
            break
    if isinstance(outcome.error, NotFound):
        self.check()
        return entry  # it is gone from there, so it was moved
    outcome.result()
    return entry


def _accept_again(self: Requests) -> Iterator[Request]:
    self._accepted.clear()
    return _accept(self)


_accept = Requests.accept


def _end_mine_only(self: Requests, request: Request, *more: object) -> None:
    if request.epoch == self._directory.leader.epoch:
        _end(self, request, *more)  # type: ignore[arg-type]


REQUESTS = (
    Canary(
        "a request is carried out although its acceptance failed",
        of(Requests, _put=_put_or_go_on),
        ASKED,
        60,
        draw_asked,
    ),
    Canary(
        "a request for another epoch is accepted", of(Requests, load=_load_as_for_this_epoch), ASKED, 60, draw_asked
    ),
    Canary(
        "a request that a former leader has accepted is carried out",
        of(Requests, load=_load_accepted_as_mine),
        ASKED,
        60,
        draw_asked,
    ),
    Canary(
        "an acceptance that is seen is taken for acknowledged",
        of(FencedDirectory, commit=_commit_or_see),
        ASKED,
        60,
        draw_asked,
    ),
    Canary(
        "a request that is not answered yet is accepted again",
        of(Requests, accept=_accept_again),
        ASKED,
        60,
        draw_asked,
    ),
    Canary(
        "a kept request that was accepted is kept on", of(Requests, _put=_put_for_whoever_leads), ASKED, 60, draw_asked
    ),
    Canary("requests for former epochs are not answered", of(Requests, _end=_end_mine_only), L1, 60, draw_asked),
)
