"""Inherited state: our processes set what they rely on (signals, streams, umask), whoever has started them.

Signals that are ignored or blocked stay so in a program that is started, closed descriptors stay closed, and a umask
counts on. With SIGCHLD ignored the kernel keeps no exit codes, and Python then takes each command for one that ended
with 0. A program of a user's own, in which ``ha.lead`` is called, keeps its signals: they are not ours.

This module uses the standard library alone: the guard imports it, and stays small.
"""

import os
import signal
import sys

CATCHABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}

# Who has these ignored for us means it: `nohup`, and the `&` of a script. Processes that serve set their own.
OF_A_TERMINAL = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}  # it raises errors instead, and has its children notice them again

OF_OTHERS = 0o077  # what a umask may take away: the owner's own files would be of no use without the rest

STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def settle() -> None:
    """Set what this process needs; for the main thread, before there is another one."""
    for number in CATCHABLE - OF_A_TERMINAL - IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _open_streams()
    os.umask(os.umask(OF_OTHERS) & OF_OTHERS)


def usual_signals() -> None:
    """Give this process the signals that a shell gives its commands; for ``preexec_fn``."""
    for number in CATCHABLE:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _open_streams() -> None:
    """Open the standard descriptors that are closed: the next file would get the number, and what is printed."""
    for number, (name, how) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            assert opened == number, "the lowest that is free"
            os.set_inheritable(opened, True)
            stream = os.fdopen(opened, how, closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
