"""Work in the background: what only computes steps back for what waits."""

import os
import resource

import pytest


def in_background(processor_s: int = resource.RLIM_INFINITY) -> None:
    """Give this process the lowest priority: it computes, while beside it tests wait for deadlines of real time.

    It gets what the others leave, so no real time bounds it: the kernel ends it after so many seconds on a processor.
    """
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s))


BOUNDED_BY_WORK = pytest.mark.timeout(0)
"""For a test that waits for processes in the background that have a limit of their own."""
