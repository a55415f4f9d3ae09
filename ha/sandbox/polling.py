"""Polling, the only way the sandbox waits, and the sandbox's errors."""

from collections.abc import Callable

import tenacity

_POLL_S = 0.05


class SandboxError(Exception):
    """Something about the sandbox did not work; the message is one sentence for people."""


class TooLateError(SandboxError):
    """Something did not happen in time."""


def until(obstacle: Callable[[], str | None], timeout_s: float, what: str) -> None:
    """Ask until nothing is in the way any more.

    Args:
        obstacle: returns what is in the way, in words that end a sentence; None if nothing is.
        timeout_s: seconds to go on asking.
        what: what is wrong if that does not suffice, in words that begin a sentence.

    Raises:
        TooLateError: there was still an obstacle at the deadline.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda answer: answer is not None),
        stop=tenacity.stop_after_delay(timeout_s),
        wait=tenacity.wait_fixed(_POLL_S),
    )
    try:
        retrying(obstacle)
    except tenacity.RetryError as error:
        raise TooLateError(f"{what} after {timeout_s:.0f} seconds: {error.last_attempt.result()}.") from error
