"""What operators ask of a job whose command fails again and again is carried out once, or answered, in each moment.

| moment | |
|---|---|
| runs | the command runs, and fails once it is asked for |
| waits | between two tries: the leader waits for the next start |
| free | between two tries: the lease is free, since the leadership has ended with the failure |
| takeover | the leader is dead, and the standby has not taken over |
| last | as in "runs", and that failure is the last one that the job may have: it has FAILED |
"""

import signal
import sys
from collections.abc import Callable

import pytest

from leader.job.admin import JobAdmin
from leader.job.request_folder import Requests, State
from leader.layout.lease import Mode
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import NOTES, Notes, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.sidecar.test_savepoints import commit, elsewhere, home
from tests.unit.ha.waiting import wait_until

FAILS = (
    NOTES
    + """
import pathlib, shutil, time, urllib.parse
home = pathlib.Path(urllib.parse.urlsplit(os.environ["HA_LEADER_DIRECTORY"]).path)
sums, notes, fails = home / "spark" / "sums", pathlib.Path("notes"), pathlib.Path("fails")
if not sums.exists():
    shutil.copytree("elsewhere", sums)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
number = len(notes.read_text().splitlines()) + 1 if notes.exists() else 1
note(max(int(each.name) for each in (sums / "commits").iterdir()))
while int(fails.read_text() or 0) < number: time.sleep(0.01)
sys.exit(3)
"""
)
"""A program that notes the newest batch that it finds, and fails if its number is among those that are to fail."""

VERBS = {
    "stop": ("job stop",),
    "cancel": ("job cancel",),
    "restart": ("job restart",),
    "restart --query": ("job restart", "--query", "sums"),
    "restart --from": ("job restart", "--from", "before", "--discard-newer"),
    "savepoint": ("savepoint take",),
    "stop --savepoint": ("job stop", "--savepoint"),
}
KEPT = ("stop", "cancel", "restart")
"""They mean the same to each leader, so the next one carries out what the present one does not."""
ENDS = {"stop": "FINISHED", "cancel": "CANCELED", "stop --savepoint": "FINISHED"}
ID = "asked"
SOME = 3  # runs: the one that failed, the next one, and that of a restart


class Loop:
    """A job whose command fails as often as it is told, and what an operator asks of it."""

    def __init__(self, workplace: Workplace, notes: Notes) -> None:
        self.workplace, self.notes = workplace, notes
        self.fail(0)
        elsewhere(workplace, 4)
        files = BoundedFiles(lambda: LocalFiles(workplace.jobs, durable=False))
        self.admin = JobAdmin(files, None, PATIENCE_S)

    def run(self, name: str, *options: str, **environment: str) -> Program:
        command = (sys.executable, "-c", FAILS)
        listed = ("run", "orders", "--contender", name, *options)
        return self.workplace.ha(*listed, "--", *command, NAME=name, **environment)

    def begin(self, verb: str, *options: str, **environment: str) -> Program:
        """Have the first run come to batch 5."""
        leader = self.run("a", *options, **environment)
        self.notes.until(1, leader)
        if verb == "restart --from":
            assert self.workplace.ha("savepoint", "take", "orders", "--request-id", "before").wait() == 0
        commit(self.workplace, "orders", 5)
        return leader

    def fail(self, runs: int) -> None:
        (staged := self.workplace.work / "staged").write_text(f"{runs}")
        staged.rename(self.workplace.work / "fails")

    def ask(self, verb: str) -> Program:
        words, *options = VERBS[verb]
        asked = ("--request-id", ID, "--timeout", f"{PATIENCE_S / 2:g}")
        return self.workplace.ha(*words.split(), "orders", *options, *asked)

    def left(self, asked: Program) -> None:
        """Wait until the request is in the store, or its command has ended."""
        wait_until(
            lambda: list((home(self.workplace) / "requests").glob(f"{ID}=*")) or asked.process.poll() is not None
        )

    def told(self) -> State | None:
        """What became of the request; None if none was left."""
        found = Requests(self.admin.directory("orders")).load(ID)
        return found.state if found is not None else None

    @property
    def status(self) -> str:
        (found,) = state(self.workplace)[2]
        return found.removeprefix("status=")

    @property
    def batches(self) -> list[int]:
        """The newest batch that each run has found."""
        return [batch for _, batch, *_ in self.notes.all()]

    def is_over(self) -> None:
        """See that all sidecars have ended, and the command with them."""
        for each in self.workplace.programs:
            each.wait()
        assert len(self.batches) <= SOME

    def goes_on(self) -> int:
        """Have one more run fail, and see that nothing is done again; returns the batch that was found before."""
        self.savepoint("then")  # whoever answers that has seen what was asked before
        wait_until(lambda: len(self.batches) > 1 and self.status == "RUNNING", what="the run after the first failure")
        before = self.batches
        assert len(before) <= SOME
        commit(self.workplace, "orders", 6)
        self.fail(len(before))
        wait_until(lambda: len(self.batches) > len(before), what="it is started again")
        self.savepoint("at-last")
        assert self.batches == [*before, 6]
        assert self.status == "RUNNING"
        return before[-1]

    def savepoint(self, name: str) -> None:
        taken = self.workplace.ha("savepoint", "take", "orders", "--request-id", name)
        assert taken.wait() == 0, taken.said


@pytest.fixture
def loop(workplace: Workplace, notes: Notes) -> Loop:
    return Loop(workplace, notes)


def runs(loop: Loop, verb: str) -> Program:
    loop.begin(verb)
    asked = loop.ask(verb)
    loop.left(asked)
    loop.fail(1)
    return asked


def waits(loop: Loop, verb: str) -> Program:
    leader = loop.begin(verb, "--restart-strategy", "fixed-delay", HA_RESTART_DELAY="15", HA_RESTART_ATTEMPTS="9")
    loop.fail(1)
    leader.until_said("is started again in ")
    return loop.ask(verb)


def free(loop: Loop, verb: str) -> Program:
    leader = loop.begin(verb, HA_HAND_OVER="5")
    loop.fail(1)

    def released() -> bool:
        lease = state(loop.workplace)[1].lease
        return lease is not None and lease.mode is Mode.RELEASED

    wait_until(released)
    leader.freeze()
    asked = loop.ask(verb)
    if verb in KEPT:
        loop.left(asked)
    leader.send(signal.SIGCONT)
    return asked


def takeover(loop: Loop, verb: str) -> Program:
    leader = loop.begin(verb)
    leader.send(signal.SIGKILL)
    leader.wait()
    asked = loop.ask(verb)
    loop.left(asked)
    loop.run("b")
    return asked


def last(loop: Loop, verb: str) -> Program:
    loop.begin(verb, HA_FAILOVER_MAX_ATTEMPTS="1")
    asked = loop.ask(verb)
    loop.left(asked)
    loop.fail(1)
    return asked


MOMENTS: tuple[Callable[[Loop, str], Program], ...] = (runs, waits, free, takeover, last)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_carried_out_once_or_answered(loop: Loop, verb: str, moment: Callable[[Loop, str], Program]) -> None:
    asked = moment(loop, verb)
    code, told = asked.wait(), loop.told()
    print(asked.said, asked.output.read_text(), loop.batches, loop.status)  # noqa: T201  # shown if the test fails
    assert told is None or told.final, f"it is answered: {asked.said}"
    assert (code == 0) == (told is State.DONE), asked.said
    assert told is not State.UNKNOWN or moment is runs, "nobody had begun to carry it out"
    if loop.status == "FAILED":
        assert told in (State.REFUSED, State.FAILED)
        loop.notes.until(2, loop.run("b", "--again"))
    elif verb in KEPT and moment is not last:
        assert told is State.DONE, asked.said
    if verb in ENDS and told is State.DONE:
        assert loop.status == ENDS[verb]
        loop.is_over()
    else:
        assert loop.goes_on() == (4 if verb == "restart --from" and told is State.DONE else 5)
