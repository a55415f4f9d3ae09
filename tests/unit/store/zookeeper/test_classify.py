"""The classification of kazoo's exceptions."""

import pytest
from kazoo import exceptions as kazoo_errors

from store import errors
from store.zookeeper import Get
from store.zookeeper.classify import classify

MEANINGS: dict[type[Exception], type[errors.StoreError]] = {
    kazoo_errors.NoNodeError: errors.NotFound,
    kazoo_errors.NodeExistsError: errors.AlreadyExists,
    kazoo_errors.BadVersionError: errors.Conflict,
    kazoo_errors.NotEmptyError: errors.NotEmpty,
    kazoo_errors.NoAuthError: errors.PermissionDenied,
    kazoo_errors.AuthFailedError: errors.PermissionDenied,
    kazoo_errors.SessionClosedRequireSaslError: errors.PermissionDenied,
    kazoo_errors.QuotaExceededError: errors.NoSpace,
    kazoo_errors.NotReadOnlyCallError: errors.NotWritable,
    kazoo_errors.NoChildrenForEphemeralsError: errors.Invalid,
    kazoo_errors.BadArgumentsError: errors.Invalid,
    kazoo_errors.InvalidACLError: errors.Invalid,
    kazoo_errors.UnimplementedError: errors.Invalid,
    kazoo_errors.EphemeralOnLocalSessionError: errors.Invalid,
    kazoo_errors.ThrottledOpError: errors.NotSent,
    kazoo_errors.ConnectionLoss: errors.ConnectionLost,
    kazoo_errors.SessionExpiredError: errors.ConnectionLost,
    kazoo_errors.ConnectionClosedError: errors.ConnectionLost,
}


ALL = dict.fromkeys([*kazoo_errors.EXCEPTIONS.values(), *MEANINGS, RuntimeError])
"""In the same order in every process: those that share the tests compare what they have collected."""


@pytest.mark.parametrize("theirs", ALL)
def test_meaning_of_every_error(theirs: type[Exception]) -> None:
    ours = classify(theirs("why"), Get("/x"))
    assert type(ours) is MEANINGS.get(theirs, errors.Unknown)
    assert "Get /x" in str(ours)
