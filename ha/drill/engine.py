"""What the Docker engine refuses is a drill's error like any other: it ends that drill, and none of those after it."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from docker.errors import DockerException

from ha.drill.ground import DrillError


@contextmanager
def engine() -> Iterator[None]:
    """Ask the engine for something; also a decorator.

    Raises:
        DrillError: it refused, or does not answer.
    """
    try:
        yield
    except (DockerException, requests.RequestException) as error:
        raise DrillError(f"The Docker engine did not do its part: {error}") from error
