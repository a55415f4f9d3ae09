"""Polling, the only way the sandbox waits for servers; the programs that it runs to their end; and its errors."""

import subprocess
from collections.abc import Callable, Mapping, Sequence

import tenacity

from ha.hosts.host_error import HostError

_POLL_S = 0.05


class SandboxError(HostError):
    """Something about the sandbox did not work; the message is one sentence for people."""


class TooLateError(SandboxError):
    """Something did not happen in time."""


def until(obstacle: Callable[[], str | None], timeout_s: float, what: str) -> None:
    """Ask until nothing is in the way any more; ``TooLateError`` if it still is at the deadline."""
    # ``obstacle`` returns what is in the way, in words that end a sentence, or None; ``what`` begins that sentence.
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda answer: answer is not None),
        stop=tenacity.stop_after_delay(timeout_s),
        wait=tenacity.wait_fixed(_POLL_S),
    )
    try:
        retrying(obstacle)
    except tenacity.RetryError as error:
        raise TooLateError(f"{what} after {timeout_s:.0f} seconds: {error.last_attempt.result()}.") from error


def ran(
    name: str,
    command: Sequence[str],
    seconds: float,
    environment: Mapping[str, str] | None = None,
    errors: int = subprocess.PIPE,  # where standard error goes
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code."""
    try:
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{name} took more than {seconds:.0f} seconds.") from error
    except OSError as error:
        raise SandboxError(f"{name} does not run: {error}.") from error


def run_well(name: str, command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> None:
    """Run a program to its end; its failure is an error."""
    if (ended := ran(name, command, seconds, environment)).returncode != 0:
        raise SandboxError(f"{name} failed: {ended.stderr.strip()[-300:]}")
