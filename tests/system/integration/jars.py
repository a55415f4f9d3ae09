"""Jars of servers that tests alone run: fetched, or whoever needs them is skipped."""

from pathlib import Path

import pytest

from ha.hosts.host_error import HostError
from ha.hosts.java import find_java
from ha.sandbox.jars import Bundle, fetched, spark_jars


def had(bundle: Bundle, *from_spark: str) -> list[Path]:
    """Return the jars of a bundle, and those of PySpark whose names have such a form."""
    try:
        found = fetched(bundle, find_java().path, lambda _: None)
    except HostError as error:
        pytest.skip(f"The jars of {bundle.name} cannot be had: {error}")
    return [*found, *(jar for each in from_spark for jar in sorted(spark_jars().glob(f"{each}-[0-9]*.jar")))]
