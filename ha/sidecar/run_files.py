"""RunFiles: the files that a sidecar shares with one run of its command, by their names in one directory."""

from pathlib import Path

from ha.sidecar.orphan import DEADLINE


class RunFiles:
    """Where they are; none of them has to exist.

    Attributes:
        belief: how long the leadership lasts; the same for all runs.
        grant: tells a warm run of its grant.
        heartbeat: newest sign of life of the program.
        python_stacks: stacks of the program's threads, once they were asked for.
        report: what the program tells of its queries.
        engine: state of the engine.
        settle: asks the program to end in order.
        program: working directory of a stored program.
        spark: configuration directory of Spark.
    """

    def __init__(self, directory: Path, number: int) -> None:
        """Name the files of a run; runs are numbered from 1."""
        self._directory, self._number = directory, number
        self.belief = directory / DEADLINE
        self.grant = self._of_run("grant")
        self.heartbeat = self._of_run("heartbeat")
        self.python_stacks = Path(f"{self.heartbeat}.python")
        self.report = self._of_run("queries")
        self.engine = self._of_run("engine")
        self.settle = self._of_run("settle")
        self.program = self._of_run("program")
        self.spark = self._of_run("spark")

    def asking_for(self, verb: str) -> Path:
        """Return the file by which the program is asked for a verb: see :mod:`ha.leadership.program_file`."""
        return self._of_run(verb)

    def _of_run(self, what: str) -> Path:
        return self._directory / f"{what}-{self._number}"
