"""The verdict: which requests a job master accepts."""

import json
import uuid
from dataclasses import dataclass, field

import pytest

from ha.jobmaster import Rejected, Verdict, check, guarded

MINE = "11111111-1111-1111-1111-111111111111"
OTHER = "22222222-2222-2222-2222-222222222222"


@dataclass
class Leader:
    job: str = "orders"
    epoch: int = 7
    session_id: str = MINE
    leads: list[bool] = field(default_factory=list)

    def is_leader(self) -> bool:
        return self.leads.pop(0) if self.leads else True


@pytest.mark.parametrize(
    ("session_id", "epoch", "verdict"),
    [
        (MINE, "7", Verdict.ACCEPTED), (MINE, 7, Verdict.ACCEPTED), (None, "7", Verdict.MISSING),
        (MINE, None, Verdict.MISSING), ("", "", Verdict.MISSING), ("not a uuid", "7", Verdict.MISSING),
        (MINE.upper().replace("1", "A"), "7", Verdict.MISSING), (MINE, "seven", Verdict.MISSING),
        (MINE, "-7", Verdict.MISSING), (MINE, "\N{ARABIC-INDIC DIGIT SEVEN}", Verdict.MISSING),
        (MINE, "7" * 5000, Verdict.MISSING), (OTHER, "6", Verdict.OLD), (MINE, "6", Verdict.OLD),
        (OTHER, "7", Verdict.UNKNOWN), (OTHER, "8", Verdict.UNKNOWN), (MINE, "8", Verdict.UNKNOWN),
    ],
)  # fmt: skip
def test_the_present_session_is_accepted(session_id: str | None, epoch: str | int | None, verdict: Verdict) -> None:
    assert check(Leader(), session_id, epoch) is verdict


def test_one_that_does_not_lead_accepts_nothing_and_names_no_session() -> None:
    leader = Leader(leads=[False])
    assert check(leader, MINE, 7) is Verdict.NOT_LEADING
    assert not Verdict.NOT_LEADING.executed
    said = json.loads(Rejected(leader, Verdict.NOT_LEADING).body)
    assert "session_id" not in said
    assert "epoch" not in said


def test_a_rejection_says_which_leader_is_present() -> None:
    rejected = Rejected(Leader(), Verdict.OLD)
    assert rejected.status == 409
    assert json.loads(rejected.body) == {
        "error": "The request is meant for an earlier leader: look up the present one, and send it again.",
        "verdict": "old",
        "job": "orders",
        "epoch": 7,
        "session_id": MINE,
    }
    assert rejected.headers["X-Ha-Verdict"] == "old"


def test_every_verdict_has_a_status_and_only_two_may_have_been_executed() -> None:
    statuses = {verdict: Rejected(Leader(), verdict).status for verdict in Verdict if verdict is not Verdict.ACCEPTED}
    assert {verdict.value: status for verdict, status in statuses.items()} == {
        "missing": 400,
        "old": 409,
        "unknown": 409,
        "not-leading": 421,
        "denied": 403,
        "ended": 503,
    }
    assert {verdict for verdict in Verdict if verdict.executed} == {Verdict.ACCEPTED, Verdict.ENDED}


def test_a_guarded_function_runs_only_for_the_leader_it_is() -> None:
    ran = []

    @guarded(Leader())
    def handle(headers: object, word: str) -> str:
        ran.append(headers)
        return word.upper()

    assert handle({"X-Ha-Session-Id": MINE, "X-Ha-Epoch": "7"}, "yes") == "YES"
    assert handle({"x-ha-session-id": MINE, "x-ha-epoch": "7"}, word="yes") == "YES"
    for headers in ({}, {"X-Ha-Session-Id": str(uuid.uuid4()), "X-Ha-Epoch": "7"}):
        with pytest.raises(Rejected):
            handle(headers, "no")
    assert len(ran) == 2


def test_a_guarded_function_whose_leadership_ends_meanwhile_does_not_answer() -> None:
    ran = []

    @guarded(Leader(leads=[True, False]))
    def handle(_: object) -> str:
        ran.append(1)
        return "as if it still led"

    with pytest.raises(Rejected) as rejected:
        handle({"X-Ha-Session-Id": MINE, "X-Ha-Epoch": "7"})
    assert (rejected.value.verdict, rejected.value.status, ran) == (Verdict.ENDED, 503, [1])
