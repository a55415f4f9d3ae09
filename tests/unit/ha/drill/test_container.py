"""Members in containers: when one has ended, by the engine's own note."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.drill import container
from ha.drill.container import Contained


def test_a_killed_member_ended_when_the_engine_says_and_not_when_it_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two were 4.7 s on a busy machine, in which the next driver had begun: that was no overlap."""
    attrs = {"State": {"FinishedAt": "2026-11-26T18:26:40.250000999Z"}}
    killed: Any = SimpleNamespace(status="exited", attrs=attrs, reload=lambda: None)
    monkeypatch.setattr(container, "wall", lambda: 1795717605.0)  # 18:26:45
    monkeypatch.setattr(container, "now", lambda: 1000.0)
    assert Contained("a", killed, killed).ended_at() == pytest.approx(995.25)
    killed.status = "running"
    assert Contained("a", killed, killed).ended_at() == 1000.0
