"""The errors of calls to a job master.

    LeaderError
    └── CallError
        ├── CallRefused     no job master has executed it, and none will
        └── CallUnknown     a job master may have executed it

The same split within one attempt is :class:`NotExecuted` and :class:`Lost`, which users never see.
"""

from leader.errors import LeaderError


class CallError(LeaderError):
    """A call to the job master was not answered."""


class CallRefused(CallError):
    """No job master has executed the call, and none will; the message says why."""


class CallUnknown(CallError):
    """It is not known whether the call was executed, or still will be."""


class NotExecuted(Exception):
    """This attempt was refused, or reached no job master: trying again is safe."""

    def __init__(self, reason: str, *, in_vain: bool = False) -> None:
        """Say why; ``in_vain`` if another attempt would be refused as well."""
        super().__init__(reason)
        self.in_vain = in_vain


class Lost(Exception):
    """This attempt may have been executed, but its answer did not come."""
