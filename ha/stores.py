"""The two stores, opened from the settings, and the history of what is done with them."""

from ha.agent.place import place_of
from ha.history.opening import NoHistory, open_history
from ha.settings import Settings
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.counting import Requests
from store.errors import Invalid
from store.opening import open_files
from store.pool import Hook
from store.zookeeper import ZooKeeper


class Stores:
    """The file system, and ZooKeeper if there is one; connects to nothing before it is used."""

    def __init__(
        self,
        settings: Settings,
        on_call: Hook | None = None,
        on_node: Hook | None = None,
        on_requests: Requests | None = None,
    ) -> None:
        """Open what the settings name.

        Args:
            settings: all of them.
            on_call: told the name and outcome of every call to the file system.
            on_node: likewise of every operation on ZooKeeper.
            on_requests: told what each operation on the file system costs the NameNode.

        Raises:
            InvalidSettings: an address is not one; the message says what was wrong.
        """
        self.settings = settings
        self.timing = settings.timing
        try:
            self.files: BoundedFiles = open_files(settings.files, on_call=on_call, on_requests=on_requests)
        except Invalid as error:
            raise InvalidSettings(f"files: {error}") from error
        try:
            self.zookeeper: ZooKeeper | None = (
                ZooKeeper(settings.zookeeper, session_timeout=settings.session_timeout, on_call=on_node)
                if settings.zookeeper
                else None
            )
        except Invalid as error:
            raise InvalidSettings(f"zookeeper: {error}") from error
        address = self.zookeeper.address if self.zookeeper is not None else None
        self.snapshots = place_of(settings.snapshots, self.files.uri, address)
        self.history: NoHistory = open_history(settings.history, settings.contender)

    def close(self) -> None:
        """Let go of both; the ZooKeeper session ends, and with it everything ephemeral."""
        if self.zookeeper is not None:
            self.zookeeper.close()
        self.files.close()
        self.history.close()
