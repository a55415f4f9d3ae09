"""Looks up the leader again and again until its process ends; what it is told goes into the history (``HA_HISTORY``).

python -m ha.drill.programs.read JOB --every S --timeout S
"""

import argparse
import threading
from contextlib import suppress

import ha
from leader.errors import LeaderError


def main() -> None:
    """Ask for ever."""
    parser = argparse.ArgumentParser(description="Ask who leads.")
    parser.add_argument("job")
    parser.add_argument("--every", type=float, default=0.1, metavar="S", help="seconds between two (%(default)s)")
    parser.add_argument("--timeout", type=float, default=2.0, metavar="S", help="seconds for each (%(default)s)")
    options = parser.parse_args()
    client, pause = ha.connect(), threading.Event()
    while True:
        with suppress(LeaderError):  # it is in the history
            client.leader(options.job, timeout=options.timeout)
        pause.wait(options.every)


if __name__ == "__main__":
    main()
