"""The history of a process, in which it records its part in the protocol. By default it records nothing.

Small to import: Python workers that only look something up have it, too.
"""

from ha.history.events import History


def open_history(folder: str, name: str) -> History:
    """Return the history of a contender, or of a process that looks up; without a folder nothing is recorded."""
    if not folder:
        return History()
    from ha.history.recorder import Recorder  # noqa: PLC0415  # only a process that records pays for it

    return Recorder(folder, name)
