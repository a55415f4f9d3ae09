"""Seeking: a stopped query goes on at other offsets of its Kafka topics, with its state kept.

It is a rewind to the newest committed batch, of whose copy the offsets are changed; so it is decided, completed and
undone like one. The batch before it gets the same offsets: a dry run that does the newest batch again reads nothing.
Outputs know a batch by what it was planned to read: the copy says what that was.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_reader import MOST_BYTES
from ha.config.stores import Stores
from ha.kafka.clients import Held, TopicPlaces, client_settings
from ha.leadership.leadership import Leadership
from ha.outputs.batch import plan_of
from ha.spark.checkpoint_tools.copying import Told
from ha.spark.checkpoint_tools.replacing import completed, replaced
from ha.spark.checkpoint_tools.rewinding import Rewinding, RewindOutlook
from ha.spark.rewind.completing import RewindPlan
from leader.errors import InvalidSettings
from leader.layout.names import SPARK
from store.errors import Invalid

LATEST, EARLIEST = -1, -2  # as Spark writes them in `startingOffsets`

WORDS = {"latest": LATEST, "earliest": EARLIEST}

Offsets = Mapping[str, Mapping[int, int]]  # by topic and partition

Aim = Offsets | int | datetime  # where a query goes: some partitions to offsets, all to an end, or all to a time


class SeekMove(msgspec.Struct, frozen=True):
    """One partition."""

    source: str  # that reads it, by its place or name
    topic: str  # of the partition
    partition: int  # its number
    before: int | None  # offset at which the query would have gone on; null if it has not read it
    after: int | None  # that at which it goes on; null if the partition is gone
    first: int  # the first one that the partition holds
    end: int  # the one that its next record gets


class SeekOutlook(RewindOutlook, frozen=True):
    """The plan of a seek."""

    moves: list[SeekMove]  # of the topics that are moved, each partition
    watermark: int  # of the state, in milliseconds since 1970; 0 if there is none

    @property
    def is_there(self) -> bool:
        """Whether there is nothing to do."""
        return all(each.before == each.after for each in self.moves)

    @property
    def aim(self) -> Offsets:
        """The same plan, which no later record of the topics changes."""
        found: dict[str, dict[int, int]] = {}
        for each in self.moves:
            if each.after is not None:
                found.setdefault(each.topic, {})[each.partition] = each.after
        return found


def aimed(text: str) -> Aim:
    """Read where a query is to go; ``InvalidSettings`` if it is neither a word, nor a time, nor offsets."""
    if text in WORDS:
        return WORDS[text]
    try:
        if text.startswith("{"):
            return msgspec.json.decode(text, type=dict[str, dict[int, int]], strict=False)
        if (found := datetime.fromisoformat(text)).tzinfo is not None:
            return found
    except (ValueError, msgspec.MsgspecError):
        pass
    raise InvalidSettings(
        f"{text!r} is no place in a topic: give earliest, latest, a time with its zone such as 2026-11-25T14:00:00Z, "
        'or offsets by topic and partition such as {"orders":{"0":120,"1":-2}} (-2 the first, -1 after the last).'
    )


def sought(
    opened: Stores,
    job: str,
    query: str,
    aim: Aim,
    kafka: str,
    *,
    choice: str,
    dry_run: bool,
    timeout: float,
    agree: Callable[..., bool],
    told: Told | None = None,
) -> tuple[SeekOutlook, str]:
    """Let a query go on elsewhere: see :func:`replaced`. ``kafka`` has the brokers, or a file of settings."""
    # Returns the plan, and the name in the trash; empty if nothing was done.
    places = TopicPlaces(client_settings(kafka))
    find = partial(Seeking, opened.files, job, query)
    completed(find(), opened, timeout, dry_run=dry_run)

    def look(seeking: Seeking) -> SeekOutlook:
        nonlocal aim
        outlook = seeking.look_ahead(aim, places)
        aim = outlook.aim  # what people have agreed to
        return outlook

    def change(seeking: Seeking, leadership: Leadership) -> RewindPlan:
        return seeking.seek(leadership, seeking.look_ahead(aim, places), choice, told)

    outlook, plan = replaced(find, opened, timeout, "sought", agree=agree, look=look, change=change)
    return outlook, plan.trash if plan is not None else ""


class Seeking(Rewinding):
    """A query of a job; its methods also raise StoreError, and LeaderError if Kafka does not answer."""

    def look_ahead(self, aim: Aim, places: TopicPlaces) -> SeekOutlook:
        """Return what a seek would do; the job may run. Raises ``Invalid`` if the query cannot go there."""
        newest = self._log(f"{SPARK}/{self._query}").committed
        if newest is None:
            raise self._without_batch("its program says where it begins")
        rewind = self.look(newest)
        offsets, commit = (
            self._directory.read(f"{SPARK}/{self._query}/{log}/{newest}", MOST_BYTES) for log in ("offsets", "commits")
        )
        sources = contents.offsets(offsets).sources
        read = {name: found for name, each in sources.items() if (found := contents.kafka_offset(each)) is not None}
        moves = self._moves(aim, read, places)
        return SeekOutlook(**msgspec.structs.asdict(rewind), moves=moves, watermark=contents.next_watermark(commit))

    def seek(self, leadership: Leadership, outlook: SeekOutlook, choice: str, told: Told | None = None) -> RewindPlan:
        """Let the query go on there; batches that it has published and not committed go ``aside``, or are kept."""
        newest = outlook.batch
        assert newest is not None
        moves = {(each.source, each.topic, each.partition): each.after for each in outlook.moves}
        changes = {f"offsets/{each}": partial(_moved, moves) for each in (newest, newest - 1) if each >= 0}
        return self.rewind(leadership, newest, choice, told, changes)

    def _moves(self, aim: Aim, read: Mapping[str, Offsets], places: TopicPlaces) -> list[SeekMove]:
        topics = {topic for each in read.values() for topic in each}
        if not topics:
            raise Invalid(f"Query {self._query!r} of job {self.job!r} reads no Kafka topic, so it has no offsets.")
        asked = set(aim) if isinstance(aim, Mapping) else topics
        if strange := sorted(asked - topics):
            raise Invalid(
                f"Query {self._query!r} does not read topic {strange[0]!r}: it reads {', '.join(sorted(topics))}."
            )
        moves = []
        for topic in sorted(asked):
            held = places.held(topic)
            known = {each for offsets in read.values() for each in offsets.get(topic, ())} & held.keys()
            goal = _goal(aim, topic, held, known, places)
            for source, offsets in read.items():
                if topic in offsets:
                    moves += _moves_of(source, topic, offsets[topic], goal, held)
        return moves


def _goal(aim: Aim, topic: str, held: Mapping[int, Held], known: set[int], places: TopicPlaces) -> dict[int, int]:
    """Return the offsets to which partitions of a topic go; a program may have chosen its partitions itself."""
    if isinstance(aim, datetime):
        goal: Mapping[int, int] = places.at(topic, known, int(aim.timestamp() * 1000))
    elif isinstance(aim, Mapping):
        goal = aim[topic]
        if strange := sorted(goal.keys() - held.keys()):
            raise Invalid(f"Topic {topic!r} has no partition {strange[0]}: it has {', '.join(map(str, sorted(held)))}.")
    else:
        goal = dict.fromkeys(known, aim)
    ends = {each: {LATEST: held[each].end, EARLIEST: held[each].first} for each in goal}
    return {each: ends[each].get(offset, offset) for each, offset in goal.items()}


def _moves_of(
    source: str, topic: str, before: Mapping[int, int], goal: Mapping[int, int], held: Mapping[int, Held]
) -> list[SeekMove]:
    moves = []
    for partition in sorted(before.keys() | goal.keys()):
        old = before.get(partition)
        first, end = held.get(partition, (0, 0))
        after = goal.get(partition, old) if partition in held else None
        if after is not None and not first <= after <= end:
            raise Invalid(
                f"Partition {partition} of {topic!r} holds the offsets from {first} to {end}, and {after} is not among "
                f"them: say in --to where it goes, such as {{{topic!r}:{{'{partition}':{first}}}}}."
            )
        moves.append(SeekMove(source, topic, partition, old, after, first, end))
    return moves


def _moved(moves: Mapping[tuple[str, str, int], int | None], data: bytes) -> bytes:
    """Return the file of a batch with the new offsets, and with the digest of what it was."""
    found = contents.offsets(data)
    sources = iter(found.sources)

    def source(said: str) -> str:
        name = next(sources)
        offset = contents.kafka_offset(found.sources[name])
        for (where, topic, partition), after in moves.items():
            if where == name and offset is not None:
                offset.setdefault(topic, {}).pop(partition, None)
                offset[topic] |= {partition: after} if after is not None else {}
        return msgspec.json.encode(offset).decode() if offset is not None else said

    return contents.rewritten(data, {contents.PLANNED: plan_of(found, data)}, source)
