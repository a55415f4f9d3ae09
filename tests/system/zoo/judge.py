"""Judging: a program is fed and killed at drawn points; then its rows are compared with those of its input."""

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from store.clock import now
from tests.system.zoo.declared import TOLD, Program
from tests.system.zoo.places import Places
from tests.system.zoo.runs import Run

FIRST, ROUND = 3, 2
PROGRESS_S, SETTLE_S, STUCK_S, STILL_S, REFUSED_S, STABLE_S, STUCK = 150.0, 400.0, 200.0, 60.0, 5.0, 1.0, 4
LISTED_S = 30.0
LONGEST = 500
"""Letters of a sentence that are kept."""
VICTIMS = ("driver", "jvm", "sidecar")


class Found(msgspec.Struct, omit_defaults=True):
    """What one run has shown.

    Attributes:
        verdict: `exact`, `refused`, `told`, or `silent`: rows are wrong, and nobody has said so. `wrong`: so are those
            of plain Spark. `late`: no batch was done after the last kill in the time that there was.
        rows: expected.
        lost, doubled, wrong: rows.
        kills: how many processes were killed, each at its drawn point.
        said: the sentence of a refusal or a warning.
        finished: it has ended with 0 and rows were left.
        asked, seed: kills that were drawn, and from which seed.
        made_by: the commit of the product, and versions.
    """

    verdict: str
    rows: int
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    kills: int = 0
    said: str = ""
    finished: bool = False
    asked: int = 0
    seed: int = 0
    made_by: dict[str, str] = {}

    @property
    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


class Kill(msgspec.Struct):
    """One kill: after so many new rows of its round, and after so many seconds more."""

    victim: str
    rows: int
    wait: float


def draw(program: Program, seed: int, count: int) -> list[Kill]:
    chosen = random.Random(f"{seed} {program.name}")  # noqa: S311
    first = chosen.randrange(len(VICTIMS))
    return [
        Kill(VICTIMS[(first + each) % 3], chosen.choice((1, 1, 4)), chosen.choice((0, 0, 0, 0.2, 0.6)))
        for each in range(count)
    ]


class Judge:
    def __init__(self, program: Program, places: Places, jars: Path, *, guarded: bool) -> None:
        self.program, self.places = program, places
        self.run = Run(program, places, jars, guarded=guarded)
        self.killed = self.committed = 0

    def judge(self, kills: list[Kill]) -> Found:
        places, program = self.places, self.program
        try:
            self.feed(FIRST)
            self.run.start()
            if program.beside and self.progress(1):
                self.run.start_beside()
                self.until(self.refused, PROGRESS_S)
                self.feed(ROUND)
            for kill in kills:
                if not self.progress(kill.rows):
                    break
                threading.Event().wait(kill.wait)
                self.killed += self.run.kill(kill.victim)
                self.committed = places.commits(self.run.job)
                self.feed(ROUND)
            if program.flush:
                places.flush(program.folders)
            self.settle()
            listed = self.listed()
            self.run.close()
            return self.verdict(self.run.logged(), listed)
        finally:
            self.run.close()
            places.close(self.run.job, f"{self.run.job}-other")

    def feed(self, count: int) -> None:
        if self.program.feed is None:
            self.places.feed(count, self.program.folders, self.program.copies)
        else:
            self.program.feed(self.places, count)

    def rows(self) -> list[str]:
        read = self.program.read or (lambda it: it.rows(local=self.program.local, parts=self.program.parts))
        rows = read(self.places)
        return [each for each in rows if "2026-01-2" not in each] if self.program.flush else rows

    def progress(self, more: int) -> bool:
        """Wait until so many rows more are out, or a batch if rows wait for the watermark; False if none comes."""
        before = self.moved()
        wanted = before + (1 if self.program.flush else more)
        return self.until(lambda: self.moved() >= wanted or self.stopped(), PROGRESS_S) and self.moved() >= wanted

    def refused(self) -> bool:
        return bool(sentence(self.program.refusal, self.run.logged()))

    def stopped(self) -> bool:
        """Whether no row comes any more because its query is refused; of two jobs the other one goes on."""
        return self.refused() and not self.program.beside

    def moved(self) -> int:
        return self.places.commits(self.run.job) if self.program.flush else self.program.progress(self.rows())

    def until(self, done: Callable[[], bool], within: float) -> bool:
        """Wait until it is so; False if it is not within the bound, or if the program ends again and again."""
        end, ends, pause = now() + within, len(self.run.ended), threading.Event()
        while not done():
            self.run.tick()
            if now() > end or len(self.run.ended) - ends > STUCK or (self.run.finished and not self.program.ends):
                return done()
            pause.wait(0.2)
        return True

    def settle(self) -> None:
        """Wait until all rows are there and no other comes; or until batches were done, and nothing moves any more."""
        before, end, ends, pause = self.committed, now() + SETTLE_S, len(self.run.ended), threading.Event()
        seen, changed = (-1, -1), now()
        while now() < end and len(self.run.ended) - ends <= STUCK:
            self.run.tick()
            rows = self.rows()
            moved = (self.program.progress(rows), self.places.commits(self.run.job))
            if moved != seen:
                seen, changed = moved, now()
            if self.program.endless and moved[0]:
                return
            still = (
                STABLE_S
                if not self.expected() - Counter(rows)
                else REFUSED_S
                if self.stopped()
                else STILL_S
                if moved[1] > before
                else STUCK_S
            )
            if self.run.finished and not self.program.ends:
                still = STABLE_S
            if now() > changed + still:
                return
            pause.wait(0.5)

    def listed(self) -> str:
        """Return what the commands say; what the log says as well is there when a sidecar has looked, within 10 s."""
        lost, end, pause = bool(self.expected() - Counter(self.rows())), now() + LISTED_S, threading.Event()
        while True:
            listed = self.run.listed(all_of_it=lost)
            if re.search(TOLD, listed) or not sentence(TOLD, self.run.logged()) or now() > end:
                return listed
            pause.wait(1)

    def expected(self) -> Counter[str]:
        """Return the rows that there must be; if one of two jobs is refused, those of the other one alone."""
        expected = Counter(self.program.expected(self.places))
        if self.program.beside and self.refused():
            return Counter({row: count // 2 for row, count in expected.items()})
        return expected

    def verdict(self, logged: str, listed: str) -> Found:
        expected, rows = self.expected(), Counter(self.rows())
        lost = (expected - rows).total()
        more = rows - expected
        doubled = sum(count for row, count in more.items() if row in expected)
        found = Found("exact", expected.total(), lost, doubled, more.total() - doubled, self.killed)
        found.finished = bool(lost and self.run.finished)
        refusal = sentence(self.program.refusal, logged + listed)
        told = sentence(TOLD, logged) if re.search(TOLD, listed) else ""
        committed = self.places.commits(self.run.job)
        others = found.exact if self.program.beside else committed <= self.committed + 1 and (committed or not rows)
        if refusal and not more and others:
            found.verdict, found.said = "refused", refusal
        elif told and self.run.guarded and not (found.exact and self.program.promised == "exact"):
            found.verdict, found.said = "told", told
        elif lost and not more and not found.finished and self.places.commits(self.run.job) <= self.committed:
            found.verdict = "late"
        elif lost or more:
            found.verdict = "silent" if self.run.guarded else "wrong"
        else:
            found.said = told
        return found


def sentence(pattern: str, text: str) -> str:
    """Return the first line that matches and is no line of a program, as of any run; empty without one."""
    if not pattern:
        return ""
    found = (each.strip() for each in text.splitlines() if re.search(pattern, each))
    line = next((each for each in found if not each.startswith(("raise ", "File ", '"', 'f"', "at "))), "")
    line = re.sub(
        r"^.*?(WARNING|ERROR|INFO)\s+(\S+: )?|^.*?(leader\.errors|ha\.errors|ha_hook_guarding)\.\w+: ", "", line
    )
    line = re.sub(r" \(?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)?", "", line)
    line = re.sub(r"hdfs://[^/\s]+(/zoo)?", "hdfs://...", line)
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0]} ..."
