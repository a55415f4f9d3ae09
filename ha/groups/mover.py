"""Mover: moves one job, from wherever an earlier try has stopped, or puts back what was not decided: decision 73."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass

import msgspec

from ha.config.stores import Stores
from ha.groups.marks import CopyMark
from ha.groups.mirror import Mirror
from ha.groups.steps import CALL_TIMEOUT_S, Handover, Place, Seen, bound, look, outputs, rest, time_of
from ha.leadership.lead import lead
from ha.leadership.leadership import Leadership
from ha.placement.group_files import GroupFiles
from ha.placement.place import Pointer, home_of
from ha.spark.checkpoint_tools.copying import Told
from leader.errors import Fenced, LeaderError, NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from store.clock import BOOT_CLOCK, Clock
from store.errors import Conflict, Invalid, NotFound
from store.zookeeper import ZooKeeper

SMALL_S = 3.0  # a round that takes no longer leaves little for the last one, during which the job stands still
ROUNDS = 10  # most rounds while the job runs
TRIES = 5  # steps that are repeated because another process has taken one

# Leads the job at a root, as a contender of that name; the block is entered when the job is led.
Lead = Callable[[str, str], AbstractContextManager[Leadership]]


class Moved(msgspec.Struct):
    """The end of a move."""

    job: str  # its name
    source: str = ""  # the root that it has left; empty if it lay at the target already
    target: str = ""  # the root at which it lies
    rounds: int = 0  # of copies while the job ran
    bytes: int = 0  # that were copied in all of them
    seconds: float = 0.0  # from the first look to the end
    leader: str = ""  # the contender that leads it there; empty if it had no leader before, or gets none in time
    pause: float | None = None  # seconds from the request to the old leader to this one; null if there is none


@dataclass
class Mover:
    """The move of one job to a root of its group."""

    group: GroupFiles  # the roots
    job: str  # name of the job
    lead: Lead  # leads it at one of them
    _: KW_ONLY
    # Wakes the old leader, which would look by itself within seconds; None if there is none.
    zookeeper: ZooKeeper | None
    call_timeout: float  # seconds for each call of an operator's request
    timeout: float  # seconds for a leader to hand over, and for the next one
    by: str = ""  # the operator, for the history
    say: Callable[[str], object] = str  # takes a line for people
    told: Told | None = None  # called with the progress of each round, from any thread
    clock: Clock = BOOT_CLOCK  # measures

    def __post_init__(self) -> None:
        self._roots, self._job, self._end = self.group.roots, self.job, Moved(self.job)

    def move(self, target: str) -> Moved:
        """Move the job to a root. After a crash, or an error, call it again."""
        # Conflict: somebody has written meanwhile, or the job moves to another root. Invalid: it cannot lie there, or
        # has moved lately. LeaderError: it could not be led.
        began, self._end = self.clock.now(), Moved(self.job, target=target)
        for seen in self._looks():
            with suppress(NotFound):  # another process has taken this step: look again
                if (at := seen.at) is None:
                    self._go_on(seen, target)
                elif at.root != target:
                    self._begin(seen, at, target)
                else:
                    self._settle(target)
                    self._end.seconds = round(self.clock.now() - began, 3)
                    break
        return self._end

    def undo(self) -> str:
        """Put back a move that is not decided; returns the root at which the job lies then."""
        for seen in self._looks():
            with suppress(NotFound):
                if (at := seen.at) is not None:
                    for place in seen.places:
                        if place is not at:
                            self._forget(seen, at, place)
                    return at.root
                pointer, steps = self._on_its_way(seen)
                if steps.emptied(pointer):
                    way = f"`ha job move {self._job} --to {pointer.root}`"
                    raise Conflict(f"The move of job {self._job!r} was decided: complete it, {way}.")
                steps.back(pointer, seen.next)
        raise AssertionError("unreachable: the last look returns or raises")

    def _looks(self) -> Iterator[Seen]:
        for _ in range(TRIES):
            yield look(self._roots, self._job)
        raise Conflict(f"Job {self._job!r} is moved by another process, too: look at it with `ha job roots`.")

    # --- the two halves of a move

    def _begin(self, seen: Seen, at: Place, target: str) -> None:
        """Copy the job, lead it, complete the copy, and hand over."""
        self._check(at, target)
        self._forget(seen, at, seen.of(target))
        self._end.source = at.root
        steps = Handover(self._roots, self._job, at.root, target)
        steps.prepare()
        mirror = Mirror(self._roots[at.root], self._roots[target], self._job, self.told)
        self._follow(mirror, at.root)
        name = f"move-{uuid.uuid4().hex[:8]}"
        leading = self.lead(at.root, name)  # before the leader is asked: from then on the job stands still
        began = self.clock.now()
        was_led = self._asked(at.root, name)
        with leading as leadership:
            leader, lease = JobAdmin(self._roots[at.root], None, self.call_timeout).lease(self._job)
            if leader != leadership.own.leader:
                raise NotLeader(f"Job {self._job!r} is led by another process now: run it again.")

            def may_go_on() -> None:
                if not leadership.is_leader():
                    raise NotLeader(f"Job {self._job!r} was taken over by another process: run it again.")

            self.say(f"{self._job}: its queries stand still; the last round is copied")
            next_leader = LeaderDirectory(leader.epoch + 1, f"{uuid.uuid4()}")
            mirror.last(leader.name, _released(lease, next_leader), may_go_on)
            may_go_on()
            sequence = seen.next
            copy = steps.seal(sequence, next_leader)
            pointer = steps.fence(sequence, leader)
            self._decide(steps, pointer, copy, sequence + 1)
        if was_led:
            self._await(target, next_leader, began)

    def _go_on(self, seen: Seen, target: str) -> None:
        """Decide a move whose source is fenced."""
        pointer, steps = self._on_its_way(seen)
        if pointer.root != target:
            ways = f"first `ha job move {self._job} --to {pointer.root}`, or `ha job move {self._job} --undo`"
            raise Conflict(f"Job {self._job!r} is on its way to {pointer.root}: {ways}.")
        self._end.source = steps.source
        copy = next((each for each in steps.copies() if not each.undone), None)
        if copy is not None:
            self._decide(steps, steps.fence_again(pointer, seen.next), copy, seen.next + 1)
        elif steps.emptied(pointer):
            raise LeaderError(f"Job {self._job!r} went to {target}, and is not there: nothing is left to be moved.")
        else:
            steps.back(pointer, seen.next)
            raise Conflict(f"Another process has undone this move: job {self._job!r} is at {steps.source} again.")

    def _decide(self, steps: Handover, pointer: Pointer, copy: CopyMark, sequence: int) -> None:
        """Decide, if the copy has everything; else put the source back. The fence was acknowledged."""
        try:
            steps.check(pointer, copy)
        except Conflict as error:
            steps.back(pointer, sequence)
            raise Conflict(f"{error} Job {self._job!r} is where it was: run it again.") from error
        steps.decide(copy)

    def _settle(self, target: str) -> None:
        """Write the names that readers find sooner, and delete the rest."""
        Handover(self._roots, self._job, target, target).confirm()
        seen = look(self._roots, self._job)
        if seen.at is None or seen.at.root != target:
            raise NotFound("A NameNode has forgotten what it had shown.")  # look again
        home = home_of(self._roots, self._job)
        if home != target and (known := seen.of(home).pointer) is not None and known.root != target:
            newer = f"{self._job}/{Pointer(seen.next, target).name}"
            self._roots[home].call("move", lambda files: files.make_directory(newer), CALL_TIMEOUT_S)
        for place in seen.places:
            if place.root != target and place.pointer is not None and place.pointer.root == target:
                Handover(self._roots, self._job, place.root, target).empty(place.pointer)
        Handover(self._roots, self._job, target, target).tidy(seen.of(target))

    # --- parts

    def _check(self, at: Place, target: str) -> None:
        """Refuse what cannot work, before anything is copied."""
        files, job = self._roots[at.root], self._job
        leader = JobAdmin(files, None, self.call_timeout).directory(job).leader
        why = rest(at.arrived[1], time_of(files)) if at.arrived[0] else ""
        if why := why or bound(outputs(files, job, leader.name), at.root, target):
            raise Invalid(f"Job {job!r} cannot move from {at.root}: {why}.")

    def _follow(self, mirror: Mirror, root: str) -> None:
        """Copy in rounds, until one takes a short time. The next round copies what changes meanwhile."""
        admin = JobAdmin(self._roots[root], None, self.call_timeout)
        for number in range(1, ROUNDS + 1):
            began, problem = self.clock.now(), ""
            try:
                moved = mirror.round(admin.directory(self._job).leader.name)
            except (NotFound, Conflict, Fenced) as error:
                moved, problem = 0, f" ({error})"
            self._end.rounds, self._end.bytes = number, self._end.bytes + moved
            took = self.clock.now() - began
            self.say(f"{self._job}: round {number}: {moved:,} bytes, {took:.1f} s{problem}")
            if took <= SMALL_S and not problem:
                return

    def _asked(self, root: str, name: str) -> bool:
        """Ask the leader to end in an orderly way and let this process take over; False if no other one leads."""
        admin = JobAdmin(self._roots[root], self.zookeeper, self.call_timeout)
        with suppress(NoLeader):
            return admin.ask_to_hand_over(self._job, name, self.by) is not None
        return False

    def _await(self, root: str, since: LeaderDirectory, began: float) -> None:
        """Wait for the next leader."""
        found = JobAdmin(self._roots[root], None, self.call_timeout).handed_over(self._job, since, self.timeout)
        if found is not None:
            self._end.leader, self._end.pause = found[1].contender, round(self.clock.now() - began, 3)

    def _on_its_way(self, seen: Seen) -> tuple[Pointer, Handover]:
        """Return where a job that lies nowhere is to go, and the steps from the root that it has left."""
        left = seen.left
        pointer = left.pointer if left is not None else None
        if left is None or pointer is None:
            raise NoLeader(f"There is no job {self._job!r} under any of {', '.join(self._roots)}.")
        if pointer.root not in self._roots:
            raise Invalid(f"Job {self._job!r} lies at {pointer.root}, which is no root of this group: add it to files.")
        return pointer, Handover(self._roots, self._job, left.root, pointer.root)

    def _forget(self, seen: Seen, at: Place, place: Place) -> None:
        """Revoke and delete what an earlier move has left at another root than the job's."""
        if place.names is not None:
            steps = Handover(self._roots, self._job, at.root, place.root)
            steps.revoke_all(seen.next)
            steps.discard()


def _released(lease: Lease, leader: LeaderDirectory) -> Lease:
    """The lease of the copy: anybody may seize it once the copy is the job."""
    return Lease(lease.sequence + 1, Mode.RELEASED, 0, leader.session_id, "", lease.contender)


def mover_of(
    opened: Stores,
    group: GroupFiles,
    job: str,
    timeout: float,
    by: str,
    told: Told | None,
    say: Callable[[str], object],
) -> Mover:
    """Return what moves a job, or puts a move back, with the stores of the settings."""

    def leading(root: str, contender: str) -> AbstractContextManager[Leadership]:
        zookeeper = opened.settings.stores.zookeeper
        return _until_moved(
            lead(job, timeout=timeout, files=root, contender=contender, zookeeper=zookeeper, snapshots="off")
        )

    return Mover(
        *(group, job, leading),
        zookeeper=opened.zookeeper,
        call_timeout=opened.patience,
        timeout=timeout,
        by=by,
        say=say,
        told=told,
    )


@contextmanager
def _until_moved(leading: lead) -> Iterator[Leadership]:
    with leading as leadership:
        leading.record_end("moved")
        yield leadership
