"""Patience: how long a test waits for what must happen.

A limit in a test says "this hangs", never "this is slow". So there is one limit for all, far above what anything takes,
and a machine that is slow has it multiplied: ``TESTS_SLOWNESS=3`` says that a program takes three times as long there.
"""

import os

import pytest

FACTOR = max(1.0, float(os.environ.get("TESTS_SLOWNESS") or 1))
"""How many times slower than usual this machine is; who runs the tests measures it."""

PATIENCE_S = 120 * FACTOR

DRIVER_S = 300 * FACTOR
"""For a Spark driver that starts cold: a JVM, a session, a first batch. Several of them may start side by side."""


def have_patience(item: pytest.Item) -> None:
    """Multiply the limit of a whole test too: it is above the sum of what the test waits for."""
    if FACTOR > 1:
        mark = item.get_closest_marker("timeout")
        limit = float(mark.args[0] if mark else item.config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(limit * FACTOR), append=False)
