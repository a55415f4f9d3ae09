"""Heartbeat, the sidecar's end: whether the driver still answers, and which of its processes to ask for their stacks.

The driver (:mod:`ha.spark.heartbeat`) replaces a small file again and again, each time after its JVM has answered. The
first beat begins the watch, and the removal of the file ends it.
"""

from pathlib import Path

import msgspec

LONGEST_LOOK_S = 2.0
"""The sidecar looks more often than this. A longer time between two looks was a pause of its own, and does not count:
the driver may have been paused with it, as a whole machine is."""


class Beat(msgspec.Struct, frozen=True):
    """One beat.

    Attributes:
        count: one higher with each beat.
        python: process id of the driver's Python; 0 if it is not known.
        jvm: process id of its JVM; 0 likewise.
    """

    count: int
    python: int = 0
    jvm: int = 0


_decoder = msgspec.json.Decoder(Beat)


def read(path: Path) -> Beat | None:
    """Return the newest beat; None if there is none."""
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


class Watch:
    """Decides whether a driver hangs, from what is seen of its beats. Pure: the caller gives the time."""

    def __init__(self, timeout: float) -> None:
        """Watch nothing yet.

        Args:
            timeout: seconds without a beat after which the driver hangs; 0 means never.
        """
        self._timeout = timeout
        self._last: Beat | None = None
        self._looked = 0.0
        self.silence = 0.0

    def hangs(self, at: float, beat: Beat | None) -> bool:
        """Note the newest beat; returns whether the driver hangs.

        Args:
            at: now, in seconds of the clock.
            beat: None if the driver is not watched, or not any more.
        """
        passed, self._looked = at - self._looked, at
        if beat is None or beat != self._last:
            self._last, self.silence = beat, 0.0
        elif passed <= LONGEST_LOOK_S:
            self.silence += passed
        return beat is not None and 0 < self._timeout <= self.silence
