"""How a call can fail.

    LeaderError
    └── CallError
        ├── CallRefused     no job master has executed it, and none will
        └── CallUnknown     a job master may have executed it

Within one attempt the same split is :class:`NotExecuted` and :class:`Lost`; callers of this package never see these.
"""

from leader.errors import LeaderError


class CallError(LeaderError):
    """A call to the job master was not answered."""


class CallRefused(CallError):
    """No job master has executed the call, and none will; the message says why."""


class CallUnknown(CallError):
    """Nobody here knows whether the call was executed, or still will be."""


class NotExecuted(Exception):
    """This attempt was refused, or never reached anybody: to try again is safe."""

    def __init__(self, reason: str, *, in_vain: bool = False) -> None:
        """Say why; ``in_vain`` if another attempt would be refused as well."""
        super().__init__(reason)
        self.in_vain = in_vain


class Lost(Exception):
    """This attempt may have been executed, and its answer did not come."""
