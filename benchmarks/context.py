"""Context of a benchmark run, and the real servers that it measures on."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox import Sandbox
from store.kerberos import keep_logged_in

USUAL_ROUNDS = 7  # Odd, so that a median is a measured round; two disturbed rounds do not move it much
QUICK_ROUNDS = 3


Say = Callable[[str], None]  # reports progress; takes one sentence


@dataclass(frozen=True, slots=True)
class Context:
    """Options, folder and progress output of one benchmark run."""

    quick: bool  # whether only to check that everything works; the figures mean little then
    rounds: int | None  # number of repetitions; None for the benchmark's own default
    say: Say
    folder: Path  # for files of this run; absolute; it exists, and belongs to this benchmark alone
    against: str = ""  # short id of a commit that is measured beside this one, in the same rounds; empty for none

    def repeats(self, usual: int = USUAL_ROUNDS, quick: int = QUICK_ROUNDS) -> int:
        """Return the number of repetitions: the option, else ``usual``, or ``quick`` in a quick run."""
        return self.rounds or (quick if self.quick else usual)


@contextmanager
def servers(context: Context, *, namenodes: int = 1, ticket_life: int | None = None) -> Iterator[Sandbox]:
    """Start real ZooKeeper and HDFS in the benchmark's folder, and stop them at the end."""
    sandbox = Sandbox(context.folder / "sandbox")
    sandbox.down(wipe=True)  # left over from an interrupted run
    try:
        sandbox.up(1, namenodes, context.say, secure=ticket_life is not None, ticket_life=ticket_life)
        found = sandbox.environment()
        if ticket_life is None:
            found = {name: found[name] for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}
        with environment(found), ExitStack() as stack:
            if ticket_life is not None:
                keeper = keep_logged_in(found["HA_KERBEROS_KEYTAB"], found["HA_KERBEROS_PRINCIPAL"])
                stack.callback(keeper.stop)
            yield sandbox
    finally:
        sandbox.down(wipe=True)


@contextmanager
def environment(chosen: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables, and unset those of :mod:`ha.config.settings`."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("HA_")]:
        del os.environ[name]
    os.environ.update(chosen)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
