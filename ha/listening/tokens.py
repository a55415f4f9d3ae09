"""Tokens: what a request must bring to be answered, by its role. They lie in files, and nowhere else.

A file has one token a line; empty lines and those that begin with ``#`` do not count. A request brings its token in the
header ``Authorization: Bearer TOKEN``. While a file cannot be read, none of its tokens counts.
"""

import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from ha.listening.problems import problem
from ha.listening.throttle import throttle
from ha.listening.tls import ChangingFiles, reason
from leader.errors import InvalidSettings

LEAST_CHARACTERS = 16  # a shorter token could be guessed

MAX_FILE_BYTES = 100_000

TOKEN = "ha.token"  # noqa: S105  # a name
"""In the scope of a request that was let in: which token has brought it, by its digest; empty without tokens."""

_TOKEN = re.compile(r"[!-~]+")
_log = logging.getLogger("ha.listening")
throttle(_log.name)


class Role(IntEnum):
    """The rights of a request; a higher role includes the rights of a lower one."""

    READ = 1
    OPERATE = 2


def read_tokens(path: str) -> frozenset[bytes]:
    """Return the digests of the tokens in a file; ``ValueError`` if a line is none, and does not show it."""
    with Path(path).open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    found = set()
    for number, line in enumerate(data.decode("latin-1").splitlines(), 1):
        token = line.strip()
        if not token or token.startswith("#"):
            continue
        if not _TOKEN.fullmatch(token) or len(token) < LEAST_CHARACTERS:
            raise ValueError(f"line {number} is no token: it must be at least {LEAST_CHARACTERS} ASCII characters")
        found.add(_digest(token))
    return frozenset(found)


class Tokens:
    """The tokens of some roles."""

    def __init__(self, files: Mapping[Role, tuple[str, str]]) -> None:
        """Read the files, each with the name of its setting; ``InvalidSettings`` if one cannot be read."""
        self._files: dict[Role, tuple[str, ChangingFiles[frozenset[bytes]]]] = {}
        for role, (name, path) in files.items():
            try:
                made = ChangingFiles((path,), lambda path=path: read_tokens(path))  # type: ignore[misc]
            except (OSError, ValueError) as error:
                raise InvalidSettings(f"{name} cannot be read from {path}: {reason(error)}.") from error
            self._files[role] = (name, made)

    @property
    def wanted(self) -> bool:
        """Whether reading needs a token. Changing something always does."""
        return bool(self._files)

    def role_of(self, header: str) -> Role | None:
        """Return the highest role of the token in an ``Authorization`` header; None if it has none that counts."""
        digest = _digest(_token_in(header))
        # All are compared, each in the same time: how long it takes says nothing about any token.
        matching = [role for role in self._files if _is_among(digest, self._digests(role))]
        return max(matching, default=None)

    def _digests(self, role: Role) -> Iterable[bytes]:
        name, file = self._files[role]
        try:
            return file.value()
        except (OSError, ValueError) as error:
            _log.error("%s cannot be read any more: %s. No token of it counts.", name, reason(error))
            return ()


class TokenCheck:
    """ASGI middleware: answers 401 to a request without a token that counts, 403 to one whose role is too low."""

    def __init__(
        self,
        application: ASGIApp,
        tokens: Tokens,
        needed: Callable[[Scope], Role | None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Wrap an application. ``needed`` returns the role that a request needs, None for no token at all."""
        self._application, self._tokens, self._needed = application, tokens, needed
        self._headers = dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        needed = self._needed(scope)
        if needed is None:
            await self._application(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"authorization"), b"").decode("latin-1")
        role = self._tokens.role_of(said) or (None if self._tokens.wanted else Role.READ)
        if role is None:
            text = "Send a token: Authorization: Bearer TOKEN."
            refusal = problem(401, text, {**self._headers, "WWW-Authenticate": "Bearer"})
        elif role < needed:
            name = needed.name.lower()
            text = f"This needs a token of the role {name}: the setting http_{name}_tokens names their file."
            refusal = problem(403, text, self._headers)
        else:
            # The application has no use for the token, so it cannot show it by mistake.
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"authorization"]
            scope[TOKEN] = _digest(_token_in(said)).hex() if self._tokens.wanted else ""
            await self._application(scope, receive, send)
            return
        await refusal(scope, receive, send)


def _token_in(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("latin-1", "replace")).digest()


def _is_among(digest: bytes, digests: Iterable[bytes]) -> bool:
    return any([hmac.compare_digest(digest, each) for each in digests])  # noqa: C419  # a list: all are compared
