"""Which of an agent's jobs have ended for good: found with few calls, also if no sidecar runs any more."""

from typing import Any

import pytest

from ha.agent import standalone
from ha.agent.standalone import AGAIN_S, EndedJobs
from leader.job.status import Status
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Known, Look, Source
from tests.unit.leader.faulty import Place
from tests.unit.leader.owned import CALL, FIRST, HOME, SECOND, ZEROTH, Owned

LED: Any = object()
ENDED = [each for each in Status if each.globally_terminal]


class Agent:
    def __init__(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = 100.0
        self.lists = 0
        self.made = EndedJobs(place.files, CALL)

        def at_once(name: str, operation: Any, timeout: float, done: Any) -> None:
            self.lists += 1
            done(place.files.outcome(name, operation, timeout))

        monkeypatch.setattr(standalone, "now", lambda: self.clock)
        monkeypatch.setattr(place.files, "submit", at_once)

    def end(self, leader: LeaderDirectory | None = FIRST, answer: Any = None) -> Status | None:
        known = None
        if leader is not None:
            known = Known(leader.epoch, leader.session_id, None, Source.HDFS, 0.0, 0.0, 0.0, verified=True)
        return self.made.end("orders", Look(0.0, answer, reached=True, known=known))


@pytest.fixture
def agent(place: Place, monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(place, monkeypatch)


def ends(owned: Owned, end: Status) -> None:
    owned.direct.rename(f"{HOME}/status=CREATED", f"{HOME}/status={end.value}~2")


@pytest.mark.parametrize("end", ENDED)
def test_a_job_that_has_ended_is_looked_at_once(hurt: Owned, agent: Agent, end: Status) -> None:
    ends(hurt, end)
    for _ in range(3):
        assert agent.end() is end
        agent.clock += AGAIN_S
    assert agent.lists == 1


def test_a_job_that_is_led_or_unknown_or_was_never_led_is_not_looked_at(hurt: Owned, agent: Agent) -> None:
    ends(hurt, Status.FAILED)
    assert [agent.end(answer=LED), agent.end(None), agent.end(ZEROTH)] == [None] * 3
    assert agent.lists == 0
    assert agent.end() is Status.FAILED
    assert agent.end(answer=LED) is None, "somebody runs it again"


def test_a_job_that_nobody_leads_and_that_goes_on_is_looked_at_once_a_minute(hurt: Owned, agent: Agent) -> None:
    assert agent.end() is None
    ends(hurt, Status.FAILED)
    agent.clock += AGAIN_S - 0.001
    assert (agent.end(), agent.lists) == (None, 1)
    agent.clock += 0.001
    assert (agent.end(), agent.lists) == (Status.FAILED, 2)


def test_another_leadership_is_looked_at_anew(hurt: Owned, agent: Agent) -> None:
    ends(hurt, Status.FAILED)
    assert agent.end() is Status.FAILED
    hurt.claim()
    assert agent.end(SECOND) is Status.FAILED, "its state has moved with its directory"
    assert agent.lists == 2


def test_a_store_that_does_not_answer_says_nothing_and_is_asked_again(hurt: Owned, agent: Agent, place: Place) -> None:
    ends(hurt, Status.FAILED)
    place.faulty.unreachable = True
    assert agent.end() is None
    place.faulty.unreachable = False
    agent.clock += AGAIN_S
    assert agent.end() is Status.FAILED


def test_a_job_that_is_not_kept_is_forgotten(hurt: Owned, agent: Agent) -> None:
    ends(hurt, Status.FAILED)
    agent.end()
    agent.made.keep(["orders"])
    agent.end()
    assert agent.lists == 1
    agent.made.keep(["payments"])
    agent.end()
    assert agent.lists == 2
