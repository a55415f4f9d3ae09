"""A real ZooKeeper and a real HDFS as processes on loopback, for experiments, tests and drills.

Whatever does not work is a ``SandboxError``: something is missing, failed, is taken, or took too long.
"""

from ha.sandbox.polling import SandboxError
from ha.sandbox.sandbox import Sandbox
from ha.sandbox.servers import ServerStatus

__all__ = ["Sandbox", "SandboxError", "ServerStatus"]
