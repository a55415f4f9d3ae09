"""An exit code of 0 is a success only if the program has left its block in order; with real sidecars."""

import pytest

from tests.unit.ha.noting import NOTES, Notes, run, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.sidecar.test_escalation import failures

ONCE = {"HA_RESTART_STRATEGY": "none", "HA_FAILOVER_MAX_ATTEMPTS": "1"}
LEADS = NOTES + "import ha\nfrom contextlib import suppress\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("with ha.lead('orders'): os._exit(0)", "it was inside its block of ha.lead."),
        ("with suppress(ValueError), ha.lead('orders'): raise ValueError('no')", "ValueError: no"),
        ("with ha.lead('orders') as it: it.keep_failure('ValueError', 'no'); os._exit(0)", "it was inside its block"),
    ],
    ids=["gone", "raised", "kept"],
)
def test_exit_0_is_a_failure_that_is_kept_and_counted(
    workplace: Workplace, notes: Notes, program: str, said: str
) -> None:
    del notes
    assert run(workplace, "a", LEADS + program, **ONCE).wait() == 1
    assert state(workplace)[2] == ["status=FAILED"]
    found = failures(workplace)
    assert [each["class"] for each in found][-2:] == ["exit-0", "gave-up"]
    assert found[-2]["message"].startswith(f"The command has ended with 0: {said}")
    if "keep_failure" in program:
        assert (found[0]["class"], found[0]["message"]) == ("ValueError", "no"), "the sidecar has kept it"


@pytest.mark.parametrize(
    "program",
    [
        "with ha.lead('orders'): sys.exit(0)",
        "with ha.lead('orders') as leadership: leadership.finish(); os._exit(0)",
        "with suppress(ValueError), ha.lead('orders') as it: it.finish(); raise ValueError('meant')",
    ],
    ids=["exit", "finished", "raised"],
)
def test_an_end_that_is_meant_is_a_success(workplace: Workplace, notes: Notes, program: str) -> None:
    del notes
    assert run(workplace, "a", LEADS + program, **ONCE).wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]
