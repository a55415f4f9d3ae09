"""What a process of the soak does with a seed: here, because a process that is spawned cannot import a ``__main__``."""

from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.unit.ha.checkpoints.simulated_spark import FORMATS
from tests.unit.ha.checkpoints.sweeping import Counted, live
from tests.unit.ha.spark.replication.beside import Beside, on_one_thread


def swept(seed: int) -> Counted:
    counted = Counted()
    live(FORMATS[seed % len(FORMATS)], seed, counted)
    return counted


KILLS = 10
"""Times that the replicator of one query is killed."""

CALLS = 200
"""Calls of the stores among which one is drawn: a round has dozens."""


def killed(seed: int) -> tuple[int, int, str]:
    """Kill one query's replicators at drawn calls; returns deaths, looks at the replica, and the first thing wrong."""
    on_one_thread(setattr)
    random = Random(seed)  # noqa: S311
    with TemporaryDirectory() as folder:
        beside = Beside(Path(folder), FORMATS[seed % len(FORMATS)], random)
        replica = None
        try:
            for number in count():
                beside.step(random.randrange(60))
                if beside.deaths >= KILLS:
                    break
                if number % 5 == 2:
                    beside.save()
                elif number % 5 == 4 and random.random() < 0.5:
                    beside.rewind()
                replica = beside.round(replica, random.randrange(CALLS), random.choice([0, 0, 1]))
                beside.check()
            for _ in range(3):
                replica = beside.round(replica, None, 0)
            assert beside.newest[1] == beside.spark.newest(), "it does not get level"
        except AssertionError as error:
            return beside.deaths, beside.checked, f"seed {seed}: {error}"
        return beside.deaths, beside.checked, ""
