"""Kafka's clients: their settings, as librdkafka names them, and the places of topics, as the brokers say.

The settings may be in a file on the host that uses them. It keeps secrets out of a program, of its command line and of
what Spark sends to executors.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from leader.errors import InvalidSettings, LeaderError

BROKERS = "bootstrap.servers"
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
TIMEOUT_S = 20.0  # time for one answer


class Held(NamedTuple):
    """What a partition holds: its first offset, and the one that the next record gets."""

    first: int
    end: int


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


class TopicPlaces:
    """Topics at some brokers. Its methods raise ``LeaderError`` if these do not answer."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._brokers = settings[BROKERS]
        try:
            self._admin = AdminClient({"log_level": "0", **settings})  # what fails is raised
        except (KafkaException, ValueError) as error:
            raise InvalidSettings(f"The settings of Kafka's client are refused: {reason(error)}") from error

    def held(self, topic: str) -> dict[int, Held]:
        """Return what each partition of a topic holds; ``LeaderError`` if there is no such topic."""
        try:
            known = self._admin.list_topics(timeout=TIMEOUT_S).topics  # to ask for one could create it
        except KafkaException as error:
            raise self._silent(error) from error
        if topic not in known:
            raise LeaderError(f"There is no topic {topic!r} at {self._brokers}: create it, or name other brokers.")
        partitions = list(known[topic].partitions)
        first, end = (self._asked(topic, partitions, each) for each in (_EARLIEST, _LATEST))
        return {each: Held(first[each], end[each]) for each in partitions}

    def at(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        """Return of each partition the first offset with a record of that time or later; -1 if it has none."""
        return self._asked(topic, partitions, OffsetSpec.for_timestamp(time_ms))

    def _asked(self, topic: str, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(topic, each): spec for each in partitions}
        try:
            # A reader of committed records comes no further than that, and every other one does.
            answers = self._admin.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S
            )
            return {each.partition: answer.result().offset for each, answer in answers.items()}
        except KafkaException as error:
            raise self._silent(error) from error

    def _silent(self, error: KafkaException) -> LeaderError:
        return LeaderError(f"Kafka at {self._brokers} does not say what its topics hold: {reason(error)}")


def reason(error: Exception) -> str:
    """Return what a client's error says, without its number."""
    first = error.args[0] if error.args else error
    return f"{first.str() if hasattr(first, 'str') else first}"
