"""Classification of kazoo's exceptions as refused or unknown."""

from kazoo import exceptions as kazoo

from store import errors

# Unknown, since they are missing here: the errors of a confused server (SystemZookeeperError, RuntimeInconsistency,
# DataInconsistency, MarshallingError, RequestTimeoutError), and SessionMovedError, which ends in a reconnect.
_REFUSALS: dict[type[Exception], type[errors.Refused]] = {
    kazoo.NoNodeError: errors.NotFound,
    kazoo.NodeExistsError: errors.AlreadyExists,
    kazoo.BadVersionError: errors.Conflict,
    kazoo.NotEmptyError: errors.NotEmpty,
    kazoo.NoAuthError: errors.PermissionDenied,
    kazoo.AuthFailedError: errors.PermissionDenied,
    kazoo.SessionClosedRequireSaslError: errors.PermissionDenied,
    kazoo.QuotaExceededError: errors.NoSpace,
    kazoo.NotReadOnlyCallError: errors.NotWritable,
    kazoo.NoChildrenForEphemeralsError: errors.Invalid,
    kazoo.BadArgumentsError: errors.Invalid,
    kazoo.InvalidACLError: errors.Invalid,
    kazoo.UnimplementedError: errors.Invalid,
    kazoo.EphemeralOnLocalSessionError: errors.Invalid,
    kazoo.ThrottledOpError: errors.NotSent,  # "was not executed at all", says the server
}

_MEANINGS: dict[type[errors.StoreError], str] = {
    errors.NotFound: "there is no such node, or its parent is missing",
    errors.AlreadyExists: "there is such a node already",
    errors.Conflict: "the node has another version",
    errors.NotEmpty: "the node has children",
    errors.PermissionDenied: "ZooKeeper does not allow it",
    errors.NoSpace: "the quota is used up",
    errors.NotWritable: "the server is read-only",
    errors.Invalid: "ZooKeeper says that the request makes no sense",
    errors.NotSent: "the server is overloaded",
}


def classify(error: Exception, operation: object) -> errors.StoreError:
    """Return our error for kazoo's; ``operation`` is named in its message."""
    if isinstance(error, errors.StoreError):
        return error
    if isinstance(error, kazoo.ConnectionLoss | kazoo.SessionExpiredError):  # ConnectionClosedError is one of these
        return errors.ConnectionLost(f"{operation}: the connection broke before the answer came.")
    ours = _REFUSALS.get(type(error))
    if ours is not None:
        return ours(f"{operation}: {_MEANINGS[ours]} ({type(error).__name__}).")
    return errors.Unknown(f"{operation}: ZooKeeper answered {error!r}.")
