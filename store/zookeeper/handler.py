"""Handler: threads, wake-ups and sockets for kazoo in place of its own; see :mod:`store.zookeeper.driver`."""

import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler

from store.zookeeper.dispatcher import Dispatcher
from store.zookeeper.login import tls_context
from store.zookeeper.security import Security


class Wakeup:
    """Both ends of the socket pair that kazoo wakes its connection thread with, in one eventfd that never is full."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # between a late sender and close: the number may belong to another file by then

    def fileno(self) -> int:
        """Return the descriptor, to be selected for reading."""
        return self._fd

    def send(self, data: bytes) -> int:
        """Count one up; OSError if it is closed."""
        with self._lock:
            if self._fd < 0:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            os.eventfd_write(self._fd, len(data))
        return len(data)

    def recv(self, _size: int) -> bytes:
        """Count one down, if there is one."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return b""
        return b"\0"

    def close(self) -> None:
        """Free the descriptor; kazoo calls it once for each end."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


class _Result(AsyncResult):  # type: ignore[misc]  # kazoo has no types
    """A result that calls back in the thread that sets it, which is the connection thread as a rule."""

    def _do_callbacks(self) -> None:
        for callback in self._callbacks:
            callback(self)


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Kazoo's handler without its worker threads, with our sockets, and with a bound on each attempt to connect."""

    def __init__(self, dispatcher: Dispatcher, connect_timeout: float, security: Security) -> None:
        super().__init__()
        self._dispatcher = dispatcher
        self._connect_timeout = connect_timeout
        self._security = security

    def start(self) -> None:
        """Start no workers (and register nothing to be run at exit)."""

    def stop(self) -> None:
        """There are no workers to stop."""

    def async_result(self) -> _Result:
        """Return a result that no worker waits for."""
        return _Result(self)

    def create_socket_pair(self) -> tuple[Wakeup, Wakeup]:
        """Return one eventfd for both ends."""
        both = Wakeup()
        return both, both

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, with TLS if that is asked for."""
        timeout = kwargs["timeout"] = min(self._connect_timeout, kwargs.get("timeout") or self._connect_timeout)
        # Kazoo's own context trusts every authority of this host and, by default, takes any name for a server's.
        context = tls_context(self._security) if kwargs.pop("use_ssl", False) else None
        plain = super().create_connection(*args, **kwargs)
        if context is None:
            return plain
        try:
            plain.settimeout(timeout)
            return context.wrap_socket(plain, server_hostname=kwargs.get("hostname"))
        except BaseException:
            plain.close()
            raise

    def spawn(self, func: Callable[..., None], *args: Any, **kwargs: Any) -> threading.Thread:
        """Start the connection thread."""
        thread = threading.Thread(target=func, args=args, kwargs=kwargs, name="zookeeper-connection", daemon=True)
        thread.start()
        return thread

    def dispatch_callback(self, callback: Any) -> None:
        """Hand a watch's event to our dispatcher."""
        self._dispatcher.post(lambda: callback.func(*callback.args))
