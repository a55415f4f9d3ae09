"""A real ZooKeeper and a real HDFS as processes on loopback, for trying things out, for tests and for drills."""

from ha.sandbox.errors import SandboxError
from ha.sandbox.sandbox import Sandbox
from ha.sandbox.status import ServerStatus

__all__ = ["Sandbox", "SandboxError", "ServerStatus"]
