"""Canaries of adoption: a sidecar takes up the leadership of one that was killed."""

import dataclasses

from leader.election import responses
from leader.election.adoption import refusal
from leader.election.election import Election
from leader.election.events import Command
from leader.layout.contact import ContactAddress
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from tests.system.simulation.canary import S1, S3, Canary, of
from tests.system.simulation.directed import (
    draw_back_after_a_release,
    draw_back_and_gone,
    draw_back_to_a_forgotten_name,
    draw_sidecar_back,
)
from tests.system.simulation.guard import Guard
from tests.system.simulation.host import Host
from tests.system.simulation.wires import Wires

_next_commands = Election._next_commands
_refusal = refusal
_hand_over = Wires.hand_over


def _believed_when_sent(self: Election, now: float) -> list[Command]:
    commands, state = _next_commands(self, now), self.state
    if state.adopting is not None and state.pending is not None and state.pending.lease is not None:
        commands += state.hold(state.pending.lease, now)
    return commands


def _released_is_ours(leader: LeaderDirectory, directory: LeaderDirectory | None, lease: Lease) -> str | None:
    ours = lease.mode is Mode.RELEASED and directory == leader and lease.owner == leader.session_id
    return None if ours else _refusal(leader, directory, lease)


def _greets_with_a_new_word(self: Wires, ended: Host, host: Host) -> ContactAddress:
    told = _hand_over(self, ended, host)
    new = dataclasses.replace(told, process=f"{self._dice.getrandbits(128):032x}")
    for key, (holder, known) in self._listening.items():
        if holder is host:
            self._listening[key] = host, dataclasses.replace(known, process=new.process)
    return new


ADOPTIONS = (
    Canary("a leadership is taken up without the lock", of(Guard, lock_is_free=True), S1, 60, draw_sidecar_back),
    Canary(
        "an adopted lease is believed before the rename is acknowledged",
        of(Election, _next_commands=_believed_when_sent),
        S1,
        250,
        draw_sidecar_back,
    ),
    Canary(
        "an adopted lease goes on with the next sequence", of(responses, LEAP=0), S1, 60, draw_back_to_a_forgotten_name
    ),
    Canary(
        "an adopted lease is shorter than the dead one's belief",
        of(Timing, adopted_ttl_ms=Timing.short_ttl_ms),
        S1,
        120,
        draw_back_and_gone,
    ),
    Canary("a released lease is taken up", of(responses, refusal=_released_is_ours), S3, 30, draw_back_after_a_release),
    Canary(
        "a sidecar that comes back greets with a word of its own",
        of(Wires, hand_over=_greets_with_a_new_word),
        S1,
        60,
        draw_sidecar_back,
    ),
)
