"""Jobs on each of the stores; see the fixtures of the copies."""

from tests.unit.ha.spark.checkpoint_tools.conftest import local, near

__all__ = ["local", "near"]
