"""A stranger's account of itself, and the drill's verdict on it."""

import msgspec
import pytest

from ha.cli import exit_code
from ha.drill.catalogue.zookeeper import _kept_out
from ha.drill.environment import DrillError
from ha.drill.stranger import Account

NOTHING = {"squat": 0, "flood": 0}


@pytest.mark.parametrize(
    ("account", "harmless"),
    [
        (Account(NOTHING, 3), True),
        (Account({}, 0, connected=False), True),
        (Account({**NOTHING, "flood": 1}, 3), False),
        (Account(NOTHING, 0), False),  # it has tried nothing, so nothing is shown
    ],
)
def test_a_stranger_is_harmless_if_it_was_kept_from_everything(account: Account, harmless: bool) -> None:
    said = f"squat: NoNodeError\n{msgspec.json.encode(account).decode()}\n"
    assert Account.of(said) == account
    assert account.harmless == harmless
    assert _kept_out("mallory", said).passed == harmless


def test_a_stranger_that_says_nothing_proves_nothing() -> None:
    with pytest.raises(DrillError, match="mallory has not said what it could do"):
        _kept_out("mallory", "Killed\n")


def test_secured_stores_are_the_sandbox_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["lab", "drill", "run", "zookeeper-lies", "--secure", "--against", "containers"]) == 2
    assert "--secure runs in the sandbox" in capsys.readouterr().err
