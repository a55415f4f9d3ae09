"""The stores of a process, opened from its settings, and the history of the calls to them."""

from ha.config.settings import Settings
from ha.config.snapshot_dir import snapshot_directory
from ha.groups.placement.place import SEPARATOR, roots_of
from ha.history.history import History, open_history
from leader.errors import InvalidSettings
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.counting import Requests
from store.errors import Invalid
from store.files import DIRECTORY_MODE
from store.lazy_imports import will_import
from store.open import open_files
from store.pool import CallHook
from store.zookeeper import ZooKeeper


class Stores:
    """The file system, and ZooKeeper if there is one. They connect when they are first used."""

    def __init__(
        self,
        settings: Settings,
        on_call: CallHook | None = None,
        on_requests: Requests | None = None,
    ) -> None:
        """Open what the settings name.

        Args:
            settings: all of them.
            on_call: receives the name and outcome of every call to the file system.
            on_requests: receives the requests to the NameNode that each operation takes.

        Raises:
            InvalidSettings: an address has the wrong form; the message says what is wrong.
        """
        self.settings = settings
        self._on_call, self._on_requests = on_call, on_requests
        self.timing = settings.timing
        if settings.kerberos_keytab:
            from store.kerberos import keep_logged_in  # noqa: PLC0415  # most processes have no keytab

            try:
                keep_logged_in(settings.kerberos_keytab, settings.kerberos_principal)
            except Invalid as error:
                raise InvalidSettings(str(error)) from error
        try:
            self.files: BoundedFiles = self.open(settings.files, int(settings.directory_mode, 8))
        except Invalid as error:
            raise InvalidSettings(f"files: {error}") from error
        try:
            self.zookeeper: ZooKeeper | None = (
                ZooKeeper(
                    settings.zookeeper,
                    session_timeout=settings.session_timeout,
                    security=settings.zookeeper_security,
                )
                if settings.zookeeper
                else None
            )
        except Invalid as error:
            raise InvalidSettings(f"zookeeper: {error}") from error
        address = self.zookeeper.address if self.zookeeper is not None else None
        self.snapshots = snapshot_directory(settings.snapshots, self.files.uri, address)
        self.history: History = open_history(settings.history, settings.contender)

    def open(self, uri: str, directory_mode: int = DIRECTORY_MODE, workers: int = 8) -> BoundedFiles:
        """Open another root with the same hooks; the caller closes it.

        Args:
            uri: of the root, or of all roots of a group.
            directory_mode: permissions of directories that are made.
            workers: most calls at the same time.

        Raises:
            Invalid: the URI has the wrong form.
        """
        if SEPARATOR in uri:
            will_import("ha.groups.placement.policies")
            from ha.groups.placement.group_files import GroupFiles  # noqa: PLC0415  # most processes have one root
            from ha.groups.placement.policies import policy  # noqa: PLC0415

            choose = policy(self.settings.placement, self.settings.webhdfs_ca)
            roots = [self._root(each, directory_mode, workers) for each in roots_of(uri)]
            return GroupFiles(roots, choose, workers=workers, on_call=self._on_call)
        return self._root(uri, directory_mode, workers, self._on_call)

    def _root(self, uri: str, directory_mode: int, workers: int, on_call: CallHook | None = None) -> BoundedFiles:
        return open_files(
            uri,
            workers=workers,
            directory_mode=directory_mode,
            ca=self.settings.webhdfs_ca,
            on_call=on_call,
            on_requests=self._on_requests,
        )

    def directory_uri(self, job: str, leader: LeaderDirectory) -> str:
        """Return the URI of a job's leader directory, as Spark takes it."""
        return self.files.at(f"{job}/{leader.name}")

    def close(self) -> None:
        """Close both stores. The ZooKeeper session ends, and its ephemeral nodes with it."""
        if self.zookeeper is not None:
            self.zookeeper.close()
        self.files.close()
        self.history.close()
