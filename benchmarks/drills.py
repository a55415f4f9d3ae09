"""Command line ``python -m benchmarks.drills``: ``ha lab drill run``, also with a baseline in place of this project."""

import copy

import click

from benchmarks.baselines.provider import BASELINES
from ha.cli.drill import OWN, run_drills
from ha.drill.ha_provider import PROVIDERS


def command() -> click.Command:
    """Return ``ha lab drill run`` with an option for the HA provider."""
    PROVIDERS.update(BASELINES)
    option = click.Option(
        ["--provider", "providers"],
        type=click.Choice(list(PROVIDERS)),
        multiple=True,
        default=[OWN],
        show_default=True,
        help="HA provider that keeps the job available; with several, the first one decides the exit code.",
    )
    extended = copy.copy(run_drills)
    extended.params = [*run_drills.params, option]
    return extended


if __name__ == "__main__":
    command()(prog_name="python -m benchmarks.drills")
