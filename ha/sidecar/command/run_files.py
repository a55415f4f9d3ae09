"""RunFiles: the files that a sidecar shares with one run of its command, by their names in one directory."""

from pathlib import Path

from ha.hook.query_rules import FILE
from ha.sidecar.command.orphan import DEADLINE


class RunFiles:
    """Where they are; none of them has to exist."""

    def __init__(self, directory: Path, number: int) -> None:
        """Name the files of a run; runs are numbered from 1."""
        self._directory, self._number = directory, number
        self.belief = directory / DEADLINE  # how long the leadership lasts; the same for all runs
        self.grant = self._of_run("grant")  # tells a warm run of its grant
        self.heartbeat = self._of_run("heartbeat")  # newest sign of life of the program
        self.python_stacks = Path(f"{self.heartbeat}.python")  # of the program's threads, once asked for
        self.report = self._of_run("queries")  # what the program reports of its queries
        self.unguarded = Path(f"{self.report}{FILE}")  # its queries that no takeover continues
        self.engine = self._of_run("engine")  # state of the engine
        self.settle = self._of_run("settle")  # asks the program to end in order
        self.restart = self._of_run("restart-query")  # asks it to start a query again
        self.output = self._of_run("output")  # leads to the log of what the command has written
        self.program = self._of_run("program")  # working directory of a stored program
        self.spark = self._of_run("spark")  # configuration directory of Spark

    def _of_run(self, what: str) -> Path:
        return self._directory / f"{what}-{self._number}"
