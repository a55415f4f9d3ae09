"""Supervisor: decides which queries start, stop and restart. Pure: events and the time go in, commands come out.

Each :class:`Start` is answered by ``started`` and later ``ended``, or by ``ended`` alone. A region whose query fails
stops its other queries, and starts all of them again once they have stopped and its restart strategy allows it. So no
query ever runs twice, and failures that overlap make one restart. Regions know nothing of each other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from ha.config.restart_strategy import RestartStrategy
from ha.spark.queries.query_failures import Failure


class QueryState(StrEnum):
    """State of a query, as it is shown."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Start:
    """Start these queries of one region, in the order of their declaration; ``attempt`` counts the region's starts."""

    queries: tuple[str, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class StopQuery:
    """Stop a running query."""

    query: str
    attempt: int


@dataclass(frozen=True, slots=True)
class QueryEnd:
    """End the program: the job has finished, or this failure is left to the program's guard."""

    failure: Failure | None


Command = Start | StopQuery | QueryEnd


@dataclass(slots=True)
class Query:
    """One query, as far as the supervisor knows."""

    name: str  # of the query
    state: QueryState = QueryState.STARTING  # as it is shown
    restarts: int = 0  # how often it was started again
    error: str = ""  # the last one, in one line; empty if there was none
    run_id: str = ""  # of Spark, of the present or last run; empty before the first one
    overdue: int = 0  # batches in a row that took too long
    live: bool = False  # a start was commanded, and no end of it was reported
    runs: bool = False


class _Phase(Enum):
    ACTIVE = auto()
    STOPPING = auto()
    WAITING = auto()
    FAILED = auto()


class _Region:
    def __init__(self, queries: Sequence[Query], strategy: RestartStrategy) -> None:
        self.queries, self.strategy = queries, strategy
        self.phase = _Phase.ACTIVE
        self.attempt = 0
        self.failure: Failure | None = None
        self.late = False  # it has failed only because queries had not stopped in time; once they have, it resumes
        self.restart_at = self.stop_by = 0.0

    @property
    def live(self) -> bool:
        return any(query.live for query in self.queries)

    @property
    def over(self) -> bool:
        """Whether it is over for good."""
        finished = all(query.state is QueryState.FINISHED for query in self.queries)
        return not self.live and (self.phase is _Phase.FAILED or finished)


class Supervisor:
    """Supervises the queries of one job until it commands the end; after that it commands nothing."""

    def __init__(
        self,
        regions: Iterable[Sequence[str]],
        strategy: Callable[[], RestartStrategy],
        stop_timeout: float,
        *,
        keep_others: bool = False,
        tolerated: int = 0,
    ) -> None:
        # `strategy` returns a new one, for one region. A query stops within `stop_timeout` seconds, or its region is
        # given up; with `keep_others` the other regions keep running then, else the program ends. So many batches in a
        # row of one query are tolerated that take too long, without a failure of its region.
        self._regions = [_Region([Query(name) for name in names], strategy()) for names in regions]
        self._region_of = {query.name: region for region in self._regions for query in region.queries}
        self.queries = {query.name: query for region in self._regions for query in region.queries}
        self._strategy = strategy
        self._stop_timeout = stop_timeout
        self._keep_others = keep_others
        self._tolerated = tolerated
        self.stuck = False  # whether the failure of the end is that a query does not stop
        self._ended = False

    def begin(self) -> list[Command]:
        """Start all regions."""
        return self._unless_over([self._start(region) for region in self._regions])

    def started(self, query: str, attempt: int, run_id: str) -> list[Command]:
        """Take note that a query runs; one whose region has failed meanwhile is stopped."""
        region, found = self._region_of[query], self.queries[query]
        if self._ended or attempt != region.attempt or not found.live or found.runs:
            return []
        found.runs, found.run_id = True, run_id
        if region.phase is not _Phase.ACTIVE:
            return [StopQuery(query, attempt)]
        found.state = QueryState.RUNNING
        return []

    def ended(self, query: str, attempt: int, failure: Failure | None, now: float) -> list[Command]:
        """Take note that a query has ended, or could not be started; without a failure it has finished."""
        region, found = self._region_of[query], self.queries[query]
        if self._ended or attempt != region.attempt or not found.live:
            return []
        found.live = found.runs = False
        commands: list[Command] = []
        if failure is not None and (region.phase is _Phase.ACTIVE or failure.remedy):
            found.error = failure.error
            commands = self._fail(region, failure, now)
        elif region.phase is _Phase.ACTIVE:
            found.state = QueryState.FINISHED
        if region.late and not region.live:
            self._go_on(region)
        return self._unless_over([*commands, *self._advance(region, now)])

    def overdue(self, query: str, attempt: int, failure: Failure, now: float, *, completed: bool) -> list[Command]:
        """Interrupt a batch that takes too long: its region starts again."""
        # `completed` says whether this run of the query has completed a batch before.
        region, found = self._region_of[query], self.queries[query]
        if self._ended or attempt != region.attempt or not found.runs or region.phase is not _Phase.ACTIVE:
            return []
        found.overdue = 1 if completed else found.overdue + 1
        found.error = failure.error
        counts = found.overdue > self._tolerated
        return self._unless_over(self._fail(region, failure, now, counts=counts))

    def restart(self, query: str, now: float) -> list[Command]:
        """Start the region of a query again, as an operator asks, also one that was given up; its attempts are new."""
        region = self._region_of[query]
        if self._ended:
            return []
        region.strategy, region.restart_at, region.failure = self._strategy(), now, None
        region.late = False
        commands: list[Command] = []
        if region.phase in (_Phase.ACTIVE, _Phase.FAILED):
            region.phase, region.stop_by = _Phase.STOPPING, now + self._stop_timeout
            for each in region.queries:
                each.state = QueryState.RESTARTING
            commands = self._stop(region)
        return self._unless_over([*commands, *self._advance(region, now)])

    def region(self, query: str) -> tuple[tuple[str, ...], int]:
        """Return the queries that start together with this one, and the number of their present start."""
        region = self._region_of[query]
        return tuple(each.name for each in region.queries), region.attempt

    def restarted(self, query: str, before: int) -> Failure | bool:
        """Return whether a region runs again after this number of its starts, or the failure that came in between."""
        region = self._region_of[query]
        if region.failure is not None and (region.attempt > before or region.phase is _Phase.FAILED):
            return region.failure
        begun = region.attempt > before and region.phase is _Phase.ACTIVE
        return begun and all(each.state in (QueryState.RUNNING, QueryState.FINISHED) for each in region.queries)

    def tick(self, now: float) -> list[Command]:
        """Do what is due: see :meth:`due`."""
        commands: list[Command] = []
        for region in self._regions:
            if region.phase is _Phase.STOPPING and now >= region.stop_by:
                commands += self._give_up(region, self._stuck(region))
                region.late = self._keep_others
                self.stuck = self.stuck or not self._keep_others
            commands += self._advance(region, now)
        return self._unless_over(commands)

    def due(self) -> float | None:
        """Return when :meth:`tick` is due; None if no time changes anything."""
        times = [region.stop_by for region in self._regions if region.phase is _Phase.STOPPING]
        times += [region.restart_at for region in self._regions if region.phase is _Phase.WAITING]
        return min(times, default=None) if not self._ended else None

    # --- one region

    def _start(self, region: _Region) -> Command:
        region.phase = _Phase.ACTIVE
        region.attempt += 1
        for query in region.queries:
            query.live = True
        return Start(tuple(query.name for query in region.queries), region.attempt)

    def _fail(self, region: _Region, failure: Failure, now: float, *, counts: bool = True) -> list[Command]:
        if region.phase is _Phase.FAILED:
            if region.late:  # and no restart would mend it
                region.failure, region.late = failure, False
            return []
        delay = None if failure.remedy else region.strategy.failed(now) if counts else 0.0
        if delay is None:
            return self._give_up(region, failure)
        region.phase, region.failure = _Phase.STOPPING, failure
        region.restart_at, region.stop_by = now + delay, now + self._stop_timeout
        for query in region.queries:
            query.state = QueryState.RESTARTING
        return self._stop(region)

    def _go_on(self, region: _Region) -> None:
        """Its queries have stopped after all: it is started again when its strategy says."""
        region.phase, region.late = _Phase.WAITING, False
        for query in region.queries:
            query.state = QueryState.RESTARTING

    def _advance(self, region: _Region, now: float) -> list[Command]:
        if region.live:
            return []
        if region.phase is _Phase.STOPPING:
            region.phase = _Phase.WAITING
        if region.phase is not _Phase.WAITING or now < region.restart_at:
            return []
        for query in region.queries:
            query.restarts += 1
        return [self._start(region)]

    def _stop(self, region: _Region) -> list[Command]:
        return [StopQuery(query.name, region.attempt) for query in region.queries if query.runs]

    def _give_up(self, region: _Region, failure: Failure) -> list[Command]:
        asked = region.phase is _Phase.STOPPING
        region.phase, region.failure = _Phase.FAILED, failure
        for query in region.queries:
            query.state = QueryState.FAILED
        if not self._keep_others:
            return [QueryEnd(failure)]
        return [] if asked else self._stop(region)

    def _stuck(self, region: _Region) -> Failure:
        names = [query.name for query in region.queries if query.live]
        cause = f", after {region.failure}" if region.failure else ""
        return Failure(names[0], f"{', '.join(names)} did not stop within {self._stop_timeout:g} s{cause}")

    def _unless_over(self, commands: list[Command]) -> list[Command]:
        """Return the commands, or the end alone if it is among them or nothing is left to do."""
        if self._ended:
            return []
        end = next((each for each in commands if isinstance(each, QueryEnd)), None)
        if end is None and all(region.over for region in self._regions):
            end = QueryEnd(next((region.failure for region in self._regions if region.phase is _Phase.FAILED), None))
        if end is None:
            return commands
        self._ended = True
        return [end]
