"""The command line, run in this process: its exit code is checked, and what it printed is returned."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from ha.cli.commands import exit_code


@dataclass(frozen=True)
class Said:
    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Runs commands. What was printed before is forgotten, and a traceback is never an answer."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, line: str, *more: object, code: int | None = 0) -> Said:
        """Run the words of the line and these arguments; a code of None allows any exit code."""
        self._capsys.readouterr()
        try:
            ended: object = exit_code([*line.split(), *map(str, more)])
        except SystemExit as end:
            ended = end.code
        said = Said(ended, *self._capsys.readouterr())
        assert "Traceback" not in said.err
        assert code is None or ended == code, said
        return said
