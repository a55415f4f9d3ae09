"""Settings of a Kafka client, as librdkafka names them: brokers, a mapping, or a file of them on the host that uses it.

A file keeps secrets out of a program, of its command line and of what Spark sends to executors.
"""

from collections.abc import Mapping
from pathlib import Path

from leader.errors import InvalidSettings

BROKERS = "bootstrap.servers"


def client_settings(given: Mapping[str, str] | str | Path) -> dict[str, str]:
    """Return the settings: a text with a slash is the path of a file, another one names brokers."""
    # InvalidSettings: the file cannot be read, a line of it is no `name=value`, or no brokers are named.
    if isinstance(given, Mapping):
        found = dict(given)
    elif "/" not in str(given):
        found = {BROKERS: str(given)}
    else:
        found = _read(Path(given))
    if not found.get(BROKERS):
        raise InvalidSettings(f"Kafka's brokers are not named: give {BROKERS}, such as kafka1:9092,kafka2:9092.")
    return found


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"The settings of Kafka's client cannot be read on this host: {error}") from error
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:  # the line may be a secret
                raise InvalidSettings(f"Line {number} of {path} is not NAME=VALUE, such as {BROKERS}=kafka1:9092.")
            found[name.strip()] = value.strip()
    return found
