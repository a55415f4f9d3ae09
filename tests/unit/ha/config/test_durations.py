"""Durations with a unit, as Flink and Spark have them."""

from pathlib import Path

import click
import pytest

from ha.cli.options import Seconds
from ha.config.setting import seconds_of
from ha.config.sources import load


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 s", 10),
        ("10s", 10),
        ("1 min", 60),
        ("1m", 60),
        ("500 ms", 0.5),
        ("1500 MS", 1.5),
        ("0.5 s", 0.5),
        ("2 h", 7200),
        ("1 day", 86_400),
        (" 7 seconds ", 7),
        ("-1 s", -1),
        ("10", None),
        ("", None),
        ("s", None),
        ("ten s", None),
        ("10 fortnights", None),
        ("1 s 2 ms", None),
        ("\u0661 s", None),
        ("1" * 40 + " s", None),
        ("1e3 s", None),
        ("nan s", None),
    ],
)
def test_a_number_and_a_unit(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_every_setting_of_time_takes_a_duration(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("long_ttl = '2 min'\nrestart_delay = '90 s'")
    settings = load({"audit": "1 min"}, {"HA_SHORT_TTL": "6500 ms", "HA_STOP_GRACE": "3"})
    leads, command = settings.leadership, settings.command
    assert (leads.long_ttl, leads.audit, leads.short_ttl) == (120, 60, 6.5)
    assert (command.stop_grace, command.restart_delay) == (3, 90)


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("1 min", 60), ("500ms", 0.5), ("1 d", 86_400)])
def test_a_timeout_of_a_command_takes_a_duration(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["0 s", "-1 s", "25 h", "1 fortnight", "nan"])
def test_a_timeout_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Seconds().convert(text, None, None)
