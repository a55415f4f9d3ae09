"""What a benchmark is given, and the real servers that it measures on."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox import Sandbox

USUAL_ROUNDS = 7
"""An odd number, so that a median is one of them; and two of them may be disturbed without moving it much."""

QUICK_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Context:
    """How to run, where to put files, whom to tell.

    Attributes:
        quick: whether to look only if everything works: the figures are not worth much then.
        rounds: how often to repeat; None for what suits the benchmark.
        say: is told what is being done, in one sentence.
        folder: for files of this run; absolute; it exists, and belongs to this benchmark alone.
    """

    quick: bool
    rounds: int | None
    say: Callable[[str], None]
    folder: Path

    def repeats(self, usual: int = USUAL_ROUNDS, quick: int = QUICK_ROUNDS) -> int:
        """How often to repeat, if the benchmark usually does so ``usual`` times, and ``quick`` times in haste."""
        return self.rounds or (quick if self.quick else usual)


@contextmanager
def servers(context: Context, *, zookeepers: int = 1, namenodes: int = 1) -> Iterator[Sandbox]:
    """Start real ZooKeeper and HDFS in the benchmark's folder, and stop them at the end.

    Inside, this process and its children use their configuration of Hadoop and their user; what else a client is told,
    it is told by arguments: settings in this process's environment do not count.

    Args:
        context: where to, and whom to tell.
        zookeepers: 1 or 3.
        namenodes: 1 or 2.

    Raises:
        SandboxError: they did not start.
    """
    sandbox = Sandbox(context.folder / "sandbox")
    sandbox.down(wipe=True)  # what an interrupted run has left
    try:
        sandbox.up(zookeepers, namenodes, context.say)
        found = sandbox.environment()
        with _environment({name: found[name] for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}):
            yield sandbox
    finally:
        sandbox.down(wipe=True)


@contextmanager
def _environment(chosen: Mapping[str, str]) -> Iterator[None]:
    """With these variables, and with none of those that set something in :mod:`ha.settings`."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("HA_")]:
        del os.environ[name]
    os.environ.update(chosen)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
