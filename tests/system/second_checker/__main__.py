"""Both checkers on many histories, from the command line.

python -m tests.system.second_checker --seeds 100000 --mistakes 5
"""

import sys
from functools import partial

import click

from tests.pools import pool_in_background, results
from tests.system.second_checker.comparing import compare

TOLD = 100
"""Seeds between two lines of progress."""


@click.command()
@click.option("--seeds", default=2000, show_default=True, help="How many seeds to simulate.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--mistakes", default=5, show_default=True, help="Copies of each history with a drawn mistake.")
@click.option("--processes", default=1, show_default=True)
def main(seeds: int, first: int, mistakes: int, processes: int) -> None:
    """Search for a history on which the checkers differ; exit code 1 if there is one."""
    histories = broken = differences = 0
    with pool_in_background(processes) as pool:
        found = results(pool, partial(compare, mistakes=mistakes), range(first, first + seeds), chunk=5)
        for number, compared in enumerate(found, 1):
            histories += compared.histories
            broken += compared.broken
            differences += len(compared.differences)
            for line in compared.differences:
                click.echo(line)
            if number % TOLD == 0 or number == seeds:
                sofar = f"{histories} histories, {broken} broken by one of the two, {differences} judged differently"
                click.echo(f"{number} of {seeds} seeds: {sofar}; next is seed {first + number}")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
