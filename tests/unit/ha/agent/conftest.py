"""Fixtures of the agent's tests."""

from tests.unit.leader.conftest import hurt, place

__all__ = ["hurt", "place"]
