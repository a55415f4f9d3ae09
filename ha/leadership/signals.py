"""Signals of a process that serves: HUP ends it in order, as INT and TERM do, and QUIT writes its threads' stacks."""

import faulthandler
import signal
import sys
from collections.abc import Callable
from types import FrameType


def end_in_order(ended: Callable[[int, FrameType | None], object]) -> None:
    """Have this function called for each signal that asks the process to end; under ``nohup`` HUP does nothing."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ended)
    if sys.__stderr__ is not None:
        faulthandler.register(signal.SIGQUIT, file=sys.__stderr__, all_threads=True)
