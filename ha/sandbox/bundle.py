"""Bundle: jars that are fetched together from the package registry, once, and known by their digest."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox.cache import cache_directory, cached_folder
from ha.sandbox.ivy import Module, retrieve
from ha.sandbox.jars import spark_jars


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are fetched together, once.

    Attributes:
        name: of their folder in the cache.
        modules: those to fetch.
        transitive: whether all that they need is fetched as well.
        digest: see :func:`ha.sandbox.cache.digest_of`.
        megabytes: their size, for people.
    """

    name: str
    modules: tuple[Module, ...]
    transitive: bool
    digest: str
    megabytes: int


def fetched(bundle: Bundle, java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars of a bundle; fetch them if they are missing or damaged.

    Args:
        bundle: which ones.
        java: the Java to run Ivy with.
        progress: is told about a fetch.

    Raises:
        SandboxError: PySpark is not installed, there is no network, or something else was fetched.
    """

    def fetch(folder: Path) -> None:
        progress(f"Fetching {bundle.name} ({bundle.megabytes} MB, once)")
        retrieve(java, spark_jars(), folder, bundle.modules, transitive=bundle.transitive)

    return cached_folder(cache_directory() / bundle.name, bundle.digest, fetch)
