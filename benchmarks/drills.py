"""Command line ``python -m benchmarks.drills``: ``ha lab drill run``, also with a baseline in place of this project."""

import copy
from collections.abc import Callable
from pathlib import Path

import click

import benchmarks
from ha.cli.drill import OWN, run_drills
from ha.drill.ha_provider import PROVIDERS, Contend, DrillJob, HaProvider


def _contend(module: str) -> Contend:
    def contend(job: DrillJob, name: str) -> list[str]:
        driver = ["python", "-m", "benchmarks.baselines.append_words", *job.arguments()]
        checkpoint = ["--checkpoint", f"{job.directory}/checkpoint"]
        return ["python", "-m", module, job.name, "--contender", name, "--", *driver, *checkpoint]

    return contend


def _read(baseline: str) -> Callable[[str, float, float], list[str]]:
    def read(job: str, every: float, timeout: float) -> list[str]:
        options = ["--every", str(every), "--timeout", str(timeout)]
        return ["python", "-m", "benchmarks.baselines.reading", baseline, job, *options]

    return read


def _provider(name: str, module: str) -> HaProvider:
    results = ("python", "-m", "benchmarks.baselines.appended_words")
    package = Path(benchmarks.__file__).parent
    return HaProvider(name, _contend(f"benchmarks.baselines.{module}"), _read(name), results, package=package)


BASELINES = {each.name: each for each in (_provider("kazoo", "kazoo_election"), _provider("curator", "curator_latch"))}


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
