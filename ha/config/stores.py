"""The stores of a process, opened from its settings, and the history of the calls to them."""

from contextlib import suppress
from typing import Any

from ha.config.settings import Settings
from ha.config.snapshot_dir import snapshot_directory
from ha.history.events import History
from ha.placement.place import SEPARATOR, roots_of
from leader.errors import InvalidSettings
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.counting import Requests
from store.errors import Invalid, StoreError
from store.files import DIRECTORY_MODE
from store.lazy_imports import will_import
from store.open import open_files
from store.outcome import Outcome
from store.pool import CallHook
from store.traits import traits
from store.zookeeper import ZooKeeper
from store.zookeeper.client import CLOSE_TIMEOUT_S

COMMAND_CALL_S = 5.0  # seconds that a command waits for a call at least; :attr:`Stores.patience` says why


class Stores:
    """The file system, and ZooKeeper if there is one. They connect when they are first used."""

    def __init__(
        self, settings: Settings, on_call: CallHook | None = None, on_requests: Requests | None = None
    ) -> None:
        """Open what the settings name."""
        # `on_call`: receives the name and outcome of every call to a file system. `on_requests`: receives the requests
        # to the NameNode that each operation takes.
        # InvalidSettings: an address has the wrong form; the message says what is wrong.
        self.settings, self._on_call, self._on_requests = settings, on_call, on_requests
        self.on_outcome: CallHook = lambda *_: None
        """Receives those of the calls to the jobs' own root."""
        self.failed: tuple[StoreError | None, str] = None, ""
        """The newest error of a call to a file system, and the URI of its root."""
        self.timing = settings.leadership.timing
        if settings.stores.kerberos_keytab:
            from store.kerberos import keep_logged_in  # noqa: PLC0415  # most processes have no keytab

            try:
                keep_logged_in(settings.stores.kerberos_keytab, settings.stores.kerberos_principal)
            except Invalid as error:
                raise InvalidSettings(str(error)) from error
        elif not traits(settings.stores.files).local:
            _watch_ticket()
        try:
            self.files: BoundedFiles = self.open(
                settings.stores.files, int(settings.stores.directory_mode, 8), on_call=self._ended
            )
        except Invalid as error:
            raise InvalidSettings(f"files: {error}") from error
        try:
            self.zookeeper: ZooKeeper | None = (
                ZooKeeper(
                    settings.stores.zookeeper,
                    session_timeout=settings.leadership.session_timeout,
                    security=settings.stores.zookeeper_security,
                )
                if settings.stores.zookeeper
                else None
            )
        except Invalid as error:
            raise InvalidSettings(f"zookeeper: {error}") from error
        address = self.zookeeper.address if self.zookeeper is not None else None
        self.snapshots = snapshot_directory(settings.leadership.snapshots, self.files.uri, address)
        self.history: History = open_history(settings.stores.history, settings.leadership.contender)

    def open(
        self, uri: str, directory_mode: int = DIRECTORY_MODE, workers: int = 8, on_call: CallHook | None = None
    ) -> BoundedFiles:
        """Open another root; the caller closes it."""
        # `uri`: of the root, or of all roots of a group. `directory_mode`: permissions of directories that are made.
        # `workers`: most calls at the same time. `on_call`: hears of each; None for the one of all stores.
        # Invalid: the URI has the wrong form.
        if SEPARATOR in uri:
            will_import("ha.placement.load")
            from ha.placement.group_files import GroupFiles  # noqa: PLC0415  # most processes have one root
            from ha.placement.load import policy  # noqa: PLC0415

            choose = policy(self.settings.stores.placement, self.settings.stores.webhdfs_ca)
            roots = [self._root(each, directory_mode, workers, None) for each in roots_of(uri)]
            return GroupFiles(roots, choose, workers=workers, on_call=on_call or self._on_call)
        return self._root(uri, directory_mode, workers, on_call or self._on_call)

    def open_root(self, uri: str, workers: int = 8) -> BoundedFiles:
        """Open one directory, whose name may have a comma; else the same as :meth:`open`."""
        return self._root(uri, DIRECTORY_MODE, workers, self._on_call)

    def _ended(self, name: str, outcome: Outcome[Any]) -> None:
        self.on_outcome(name, outcome)
        if self._on_call is not None:
            self._on_call(name, outcome)

    def _root(self, uri: str, directory_mode: int, workers: int, on_call: CallHook | None) -> BoundedFiles:
        def ended(name: str, outcome: Outcome[Any]) -> None:
            if outcome.error is not None:
                self.failed = outcome.error, uri
            if on_call is not None:
                on_call(name, outcome)

        return open_files(
            uri,
            workers=workers,
            directory_mode=directory_mode,
            ca=self.settings.stores.webhdfs_ca,
            on_call=ended,
            on_requests=self._on_requests,
        )

    @property
    def patience(self) -> float:
        """Seconds that a command waits for a call. No lease hangs on it: a slow store is no reason to give up."""
        return max(self.timing.call_timeout, COMMAND_CALL_S)

    def directory_uri(self, job: str, leader: LeaderDirectory) -> str:
        """Return the URI of a job's leader directory, as Spark takes it."""
        return self.files.at(f"{job}/{leader.name}")

    def close(self) -> None:
        """Close both stores. The ZooKeeper session ends, and its ephemeral nodes with it."""
        if self.zookeeper is not None:
            none = self.zookeeper.started and self.zookeeper.session is None  # so a frozen server is not waited for
            self.zookeeper.close(0.0 if none else CLOSE_TIMEOUT_S)
        self.files.close()
        self.history.close()


def open_history(folder: str, name: str) -> History:
    """Return the history of a contender, or of a process that looks up; without a folder nothing is recorded."""
    if not folder:
        return History()
    from ha.history.recorder import Recorder  # noqa: PLC0415  # only a process that records pays for it

    return Recorder(folder, name)


def _watch_ticket() -> None:
    """Have the end of this process's ticket be told, if HDFS asks for one."""
    will_import("store.hadoop_errors", "store.kerberos")
    from store.hadoop_errors import configuration  # noqa: PLC0415  # a parser of XML

    with suppress(Invalid):  # the first call of HDFS will report it
        if configuration().get("hadoop.security.authentication") == "kerberos":
            from store.kerberos import watch_ticket  # noqa: PLC0415  # most processes have no ticket

            watch_ticket()
