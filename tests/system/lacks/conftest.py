"""A place for programs of which something is taken away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.lacks.taking import LISTENS, SHARED, TEMPORARY, Place, Unavailable
from tests.unit.ha.noting import Notes
from tests.unit.ha.programs import Workplace

AGAIN = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_ATTEMPTS": "100", "HA_RESTART_DELAY": "0"}


@pytest.fixture
def place() -> Iterator[Place]:
    try:
        made = Place()
    except Unavailable as error:
        pytest.skip(f"{error}")
    yield made
    made.close()


@pytest.fixture
def workplace(tmp_path: Path, place: Place) -> Iterator[Workplace]:
    """A workplace whose programs have their files on the place's disk, and start a command again."""
    del place  # it ends after the programs
    made = Workplace(tmp_path)
    made.environment.update(AGAIN, TMPDIR=TEMPORARY, HA_SNAPSHOTS=f"{SHARED}/snapshots", HA_LISTEN=LISTENS)
    yield made
    made.end()


@pytest.fixture
def notes(workplace: Workplace) -> Notes:
    return Notes(workplace)
