"""ExcludedHosts: the hosts that a job's executors keep off from its next start. Behind the fence.

    graph/excluded=<host>

A claim takes the names along, so a change of leader forgets none.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from leader.errors import InvalidName
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import GRAPH
from store.errors import NotFound

EXCLUDED = "excluded="

MOST_HOSTS = 100  # more are a matter of the cluster's own configuration
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,198}[A-Za-z0-9])?")


class ExcludedHosts:
    """Of one job; only its leader changes them."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory

    def load(self) -> list[str]:
        """Return the hosts, sorted: one list."""
        found = [each.name for each in self._directory.list(GRAPH)]
        return sorted(
            host for name in found if name.startswith(EXCLUDED) and _HOST.fullmatch(host := name[len(EXCLUDED) :])
        )

    def keep(self, hosts: Iterable[str]) -> None:
        """Keep off these hosts, and no others. If it is interrupted, call it again."""
        wanted, known = set(hosts), set(self.load())
        if wanted - known:
            self._directory.make_folder(GRAPH)
        for host in sorted(wanted - known):
            self._directory.make_folder(f"{GRAPH}/{EXCLUDED}{host}")
        for host in sorted(known - wanted):
            with suppress(NotFound):
                self._directory.delete(f"{GRAPH}/{EXCLUDED}{host}")


def text_of(hosts: Sequence[str]) -> str:
    """Return hosts as the argument of a request."""
    return ",".join(hosts)


def hosts_of(text: str) -> list[str]:
    """Read hosts that are separated by commas: sorted, and each once. InvalidName says what is wrong with them."""
    found = sorted({each.strip() for each in text.split(",") if each.strip()})
    for each in found:
        if not _HOST.fullmatch(each):
            raise InvalidName(f"{each!r:.60} is no name of a host: letters, digits, dots and hyphens.")
    if len(found) > MOST_HOSTS:
        raise InvalidName(f"{len(found)} hosts are too many: name {MOST_HOSTS} at most.")
    return found
