"""``ha run --standby warm`` with real processes: a command that starts before the job is granted."""

import signal

from tests.unit.ha.noting import NOTES, STAYS, UNHURRIED, Notes, run, state
from tests.unit.ha.programs import Workplace, alive
from tests.unit.ha.waiting import wait_until


def warm(then: str = "stay()") -> str:
    return NOTES.replace('int(os.environ["HA_EPOCH"])', 'int(os.environ["HA_EPOCH"] or 0)') + (
        "import ha\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "note('warm')\n"
        "with ha.lead('orders') as leadership:\n"
        "    note([leadership.epoch, leadership.is_leader()])\n"
        f"    {then}\n"
    )


def test_a_warm_standby_goes_on_where_it_waits(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", warm(), "--standby", "warm")
    notes.until(2, first)
    second = run(workplace, "b", warm(), HA_STANDBY="warm")
    *_, waits, epoch = notes.until(3, second)
    assert epoch == 0
    first.send(signal.SIGTERM)
    assert first.wait() == 128 + signal.SIGTERM
    name, what, leads, _ = notes.until(4, second)
    assert (name, what, leads) == ("b", [2, True], waits), "the same process"


def test_a_leader_that_was_revoked_warms_up_again(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", warm(), "--standby", "warm", **UNHURRIED)
    notes.until(2, first)
    second = run(workplace, "b", warm(), "--standby", "warm", **UNHURRIED)
    notes.until(3, second)
    assert workplace.ha("job", "handover", "orders", "--to", "b").wait() == 0
    notes.until(5, first)
    assert sorted(name for name, what, *_ in notes.all()[3:] if what == "warm") == ["a"]
    assert workplace.ha("job", "handover", "orders", "--to", "a").wait() == 0
    wait_until(lambda: [name for name, what, *_ in notes.all() if what == [3, True]] == ["a"])


def test_a_warm_program_that_succeeds_ends_the_job(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", warm("pass"), "--standby", "warm")
    assert program.wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]
    second = run(workplace, "b", warm("pass"), "--standby", "warm")
    assert second.wait() == 0, second.said
    assert [what for name, what, *_ in notes.all() if name == "b" and what != "warm"] == [], "it was not run again"


def test_a_standby_that_is_warm_ends_when_it_is_asked_to(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS)
    notes.until(1, first)
    second = run(workplace, "b", warm(), "--standby", "warm")
    pid = notes.until(2, second)[2]
    second.send(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM
    assert not alive(pid)
    assert state(workplace)[0].epoch == 1


def test_a_program_that_ends_before_it_was_granted_anything_has_not_finished_the_job(
    workplace: Workplace, notes: Notes
) -> None:
    first = run(workplace, "a", STAYS)
    notes.until(1, first)
    second = run(workplace, "b", "", "--standby", "warm")
    second.until_said("the command ended before its grant; it is started again in")
    assert second.process.poll() is None
    assert state(workplace)[2] == ["status=RUNNING"]


def test_a_grant_that_cannot_be_told_is_given_to_another(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    in_the_way = warm().replace("import ha\n", "import ha\nos.mkdir(os.environ['HA_GRANT'] + '.staged')\n")
    standby = run(workplace, "b", in_the_way, "--standby", "warm", **UNHURRIED)
    notes.until(2, standby)
    leader.send(signal.SIGTERM)
    standby.until_said("could not be told that it leads: Is a directory")
    third = run(workplace, "c", STAYS)
    wait_until(lambda: "c" in [name for name, *_ in notes.all()], what=f"c leads; b said: {standby.said}")
    assert standby.process.poll() is None, "it stays a standby"
    assert all(what == "warm" for name, what, *_ in notes.all() if name == "b"), "and was granted nothing"
    assert "granted at epoch" in third.said
