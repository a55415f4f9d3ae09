"""Fixtures of the tests of ``ha.spark``: a job's leader directory on each of the stores."""

from tests.unit.leader.conftest import owned

__all__ = ["owned"]
