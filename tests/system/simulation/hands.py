"""Hands: carry out the steps of a plan. Every kind of step is a method, and undoes itself after its time."""

from tests.system.simulation.host_hands import HostHands
from tests.system.simulation.operator_hands import OperatorHands
from tests.system.simulation.zookeeper_hands import ZooKeeperHands


class Hands(HostHands, ZooKeeperHands, OperatorHands):
    """Breaks and mends parts of a system."""
