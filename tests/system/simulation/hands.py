"""Hands: carry out the steps of a plan. Every kind of step is a method, and undoes itself after its time."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from leader.election.events import FilesCommand
from leader.layout.bar import Bar
from leader.layout.information import LeaderInformation, decode, encode
from leader.layout.lease import LOOK, Lease, Mode
from leader.layout.names import GRAPH, RECORD, REQUESTS, newest
from leader.layout.znodes import checkpoints_path, leader_path
from store.errors import Invalid
from tests.system.simulation import strangers
from tests.system.simulation.client import Link
from tests.system.simulation.commands import KINDS
from tests.system.simulation.disturbances import place
from tests.system.simulation.ensemble import Server
from tests.system.simulation.escalation import BEFORE, Happened
from tests.system.simulation.host import Fault, Host
from tests.system.simulation.plan import Step
from tests.system.simulation.process import Process
from tests.system.simulation.requests import OPERATOR, Operator
from tests.system.simulation.sidecar import JOB, Sidecar
from tests.system.simulation.strangers import FORGED_SESSION

if TYPE_CHECKING:
    from tests.system.simulation.system import System

RETRY_S = 0.5
"""Seconds after which an operator asks again."""

FORGED_EPOCH = 4_000_000_000
FORGED_ADDRESS = "evil:1"


LOOKED_AT_FOR = 0.3
"""Share of the call time-out for which a standby's look has been under way."""


class Hands:
    """Breaks and mends parts of a system."""

    def __init__(self, system: "System") -> None:
        self._system = system
        self._mending: list[tuple[Callable[[], None], str]] = []
        self._healed = False

    def take(self, step: Step) -> None:
        """Carry out a step."""
        getattr(self, f"_{step.kind.replace('-', '_')}")(step)

    def heal(self) -> None:
        """Undo all steps that are not undone yet. No fault strikes any more, although its command is answered now."""
        self._healed = True
        mending, self._mending = self._mending, []
        for mend, _ in mending:
            mend()

    def _for(self, step: Step, what: str, begin: Callable[[], None], mend: Callable[[], None], *stores: str) -> None:
        """Apply a disturbance and undo it after the step's time; ``stores`` names the parts disturbed meanwhile."""
        system = self._system
        system.note(f"{what} ({step.seconds:g} s)", step.kind)
        for store in stores:
            system.disturbances.begin(store)
        begin()
        done = False

        def undo() -> None:
            nonlocal done
            if not done:
                done = True
                mend()
                system.note(f"{what}: over")
                for store in stores:
                    system.disturbances.end(store)

        self._mending.append((undo, what))
        system.world.after(step.seconds, undo)

    # --- hosts

    def _pause(self, step: Step) -> None:
        host = self._host(step.target)
        self._for(step, f"{host.name} is paused", host.pause, host.resume, place(host.name))

    def _crash(self, step: Step) -> None:
        host, system = self._host(step.target), self._system
        if not host.alive:
            return
        end, name = host.lose if system.plan.hosts_die else host.crash, self._name(host)
        self._for(step, f"{host.name} crashes", end, lambda: system.start_again(name), place(host.name))

    def _back(self, step: Step) -> None:
        """Kill a sidecar, not its command. A new one comes after a while, and takes it up if that is not late.

        ``how`` is the fate of its first change of a lease of its own, as in :meth:`_fate`, and the seconds of what then
        befalls it; empty for none.
        """
        host, system = self._host(step.target), self._system
        name = self._name(host)
        if host.alive and name in system.plan.contenders:

            def come() -> None:
                if not system.hosts[name].alive:  # otherwise another one was faster
                    system.start_again(name)
                    if step.how and isinstance(new := system.hosts[name], Sidecar):
                        fate, delay, then, seconds = step.how
                        own = ("own lease", fate, delay, then)
                        self._set_fate(Step(step.at, "fate", "", float(seconds), own), [new])

            self._for(step, f"{host.name} is killed, not its command", partial(system.kill, name), come, name)

    def _rush(self, step: Step) -> None:
        """Start a second sidecar on the leader's host, which would take up the command of the first."""
        host, system = self._host(step.target), self._system
        guard = host.guard if isinstance(host, Process) else None
        if guard is not None and guard.command_runs and guard.lock_is_free:
            system.rush(self._name(host), guard)

    def _cut(self, step: Step) -> None:
        host, (store, way) = self._host(step.target), step.how
        self._link(step, host, store, way)

    def _link(self, step: Step, host: Host, store: str, way: str) -> None:
        link = self._link_of(host, store)

        def begin() -> None:
            link.there, link.back = link.there and way == "back", link.back and way == "there"

        def mend() -> None:
            link.there = link.back = True

        self._for(step, f"{host.name} is cut off from {store} ({way})", begin, mend, f"{place(host.name)} {store}")

    def _isolate(self, step: Step) -> None:
        host = self._host(step.target)
        for store in ("files", "zookeeper") if self._system.ensemble else ("files",):
            self._link(step, host, store, "both")
        if self._system.wires is not None:
            self._link(step, host, "peers", "both")

    def _part(self, step: Step) -> None:
        """Break a contender's socket to the holder of its host's session; both live on."""
        host = self._host(step.target)
        if isinstance(host, Process) and host.borrows_by is not None:
            self._system.note(f"{host.name} and the holder of its host's session are parted", step.kind)
            host.borrows_by.end()

    # --- between hosts

    def _reset(self, step: Step) -> None:
        """Break all connections to a process; new ones can be made."""
        host, wires = self._host(step.target), self._system.wires
        if wires is not None:
            self._system.note(f"all connections to {host.name} are reset", step.kind)
            wires.reset(host)

    def _sever(self, step: Step) -> None:
        """Break all connections to a process; nobody reaches its host for a while."""
        self._reset(step)
        self._silence(step)

    def _silence(self, step: Step) -> None:
        self._system.injected[step.kind] += 1
        self._link(step, self._host(step.target), "peers", "both")

    def _freeze(self, step: Step) -> None:
        """Pause a process and break all connections to it."""
        self._pause(step)
        self._reset(step)

    # --- hosts and stores

    def _unseat(self, step: Step) -> None:
        """End the present leadership."""
        leader = self._system.leader
        if leader is not None:
            self.take(Step(step.at, step.how[0], self._name(leader), step.seconds))

    def _slow(self, step: Step) -> None:
        host, (store, _) = self._host(step.target), step.how
        link, delay = self._link_of(host, store), self._system.plan.timing.call_timeout * 0.7

        def begin() -> None:
            link.delay = delay

        def mend() -> None:
            link.delay = 0.0

        self._for(step, f"{host.name} reaches {store} slowly", begin, mend, f"{place(host.name)} {store}")

    def _sluggish(self, step: Step) -> None:
        """Slow down answers, which still come in time. Without a target those to all who do not lead."""
        system, (store,) = self._system, step.how
        hosts = (
            [self._host(step.target)] if step.target else [each for each in system.sidecars if each != system.leader]
        )

        def add(number: int) -> None:
            for host in hosts:
                if store == "files":
                    host.slow_files += number
                elif host.client is not None:
                    host.client.slow += number

        names = [place(host.name) for host in hosts]
        disturbed = (f"{name} {store}" for name in names)
        self._for(step, f"{store} answers {' '.join(names)} slowly", partial(add, 1), partial(add, -1), *disturbed)

    def _link_of(self, host: Host, store: str) -> Link:
        if store == "peers":
            return host.peers
        return host.client.link if store == "zookeeper" and host.client is not None else host.files_link

    def _drop(self, step: Step) -> None:
        host = self._host(step.target)
        if host.client is not None:
            client = host.client
            self._for(
                step, f"{host.name} loses its connection", client.drop, client.connect, f"{place(host.name)} zookeeper"
            )

    def _expire(self, step: Step) -> None:
        """Let the session expire: its client is silent for the whole timeout."""
        longer = Step(step.at, step.kind, step.target, self._system.plan.timing.session_timeout * 1.6, ("", "both"))
        self._link(longer, self._host(step.target), "zookeeper", "both")

    def _hang(self, step: Step) -> None:
        host = self._host(step.target)
        if host.client is None:
            return
        link = host.client.link

        def begin() -> None:
            link.hangs = True

        def mend() -> None:
            link.hangs = False

        self._for(step, f"ZooKeeper hangs for {host.name}", begin, mend, f"{place(host.name)} zookeeper")

    # --- the ensemble

    def _outage(self, step: Step) -> None:
        ensemble = self._system.zookeeper
        self._for(step, "ZooKeeper is down", ensemble.stop, ensemble.restart, "zookeeper")

    def _stall(self, step: Step) -> None:
        """A stall cannot be cut short: waiting requests already have their times."""
        system = self._system
        seconds = min(step.seconds, system.plan.timing.session_timeout)
        system.note(f"ZooKeeper's leader stalls ({seconds:g} s)", step.kind)
        system.disturbances.begin("zookeeper")
        system.zookeeper.stall(seconds)
        system.world.after(seconds, lambda: system.disturbances.end("zookeeper"))

    def _wipe(self, step: Step) -> None:
        ensemble = self._system.zookeeper

        def begin() -> None:
            ensemble.stop()
            ensemble.wipe()

        self._for(step, "ZooKeeper is down, and wiped", begin, ensemble.restart, "zookeeper")

    def _server_stop(self, step: Step) -> None:
        server = self._server(step.target)
        self._for(step, f"server {step.target} is stopped", server.stop, server.start, "zookeeper")

    def _server_cut(self, step: Step) -> None:
        """Cut both ways, or one of them, or mend one sooner than the other."""
        server, world = self._server(step.target), self._system.world
        ways = [server.to_quorum, server.from_quorum]
        dice = world.dice(f"server cut {step.at}")
        dice.shuffle(ways)
        sooner = dice.choice((0.0, dice.random(), 1.0))

        def begin() -> None:
            server.cut(*ways)
            world.after(step.seconds * sooner, mend_one)
            # The server drops its clients once it has noticed.
            world.after(float(step.how[0]), let_go)

        def mend_one() -> None:
            if len(ways) > 1:
                server.mend(ways.pop())

        def mend() -> None:
            server.mend(*ways)
            ways.clear()

        def let_go() -> None:
            if not server.in_quorum:
                server.give_up()

        self._for(step, f"server {step.target} is cut off from the quorum", begin, mend, "zookeeper")

    def _lag(self, step: Step) -> None:
        server = self._server(step.target)

        def begin() -> None:
            server.lag = float(step.how[0])

        def mend() -> None:
            server.lag = 0.0
            server.catch_up()

        self._for(step, f"server {step.target} lags", begin, mend, "zookeeper")

    def _tamper(self, step: Step) -> None:
        system = self._system
        if system.ensemble is None:
            return
        what, how = step.how
        path = leader_path(JOB) if what == "leader" else checkpoints_path(JOB)
        data: bytes | None = b"garbage"
        if how == "delete":
            data = None
        elif how == "older" and system.copies.get(path):
            data = system.copies[path][0]
        elif how == "former" and (copies := system.copies.get(path)):
            data = next((each for each in reversed(copies) if each != copies[-1]), copies[-1])
        elif how == "newest" and system.copies.get(path):
            data = system.copies[path][-1]
        elif how == "forged" and what == "leader":
            data = encode(LeaderInformation(JOB, FORGED_EPOCH, FORGED_SESSION, {"jobmaster": FORGED_ADDRESS}))

        def write() -> None:
            if system.zookeeper.up:  # nobody can write to a store that is down
                system.note(f"a stranger tampers with {path}: {how}", step.kind)
                system.zookeeper.tamper(path, data)

        system.zookeeper.arrive(write)

    def _forge(self, step: Step) -> None:
        """Write a record that names a stranger, and that is as credible as ZooKeeper alone can make it."""
        system = self._system
        copies = system.copies.get(leader_path(JOB))
        present = decode(copies[-1], JOB) if copies else None
        if present is None:
            return
        forged = {
            "forged epoch": (present.epoch + 1, FORGED_SESSION, 1),
            "forged session": (present.epoch, FORGED_SESSION, present.version),
            "forged endpoints": (present.epoch, present.session_id, present.version + 1),
        }
        epoch, session_id, version = forged[step.how[0]]
        data = encode(LeaderInformation(JOB, epoch, session_id, {"jobmaster": FORGED_ADDRESS}, version))

        def write() -> None:
            if system.zookeeper.up:  # nobody can write to a store that is down
                system.note(f"a stranger writes a record: {step.how[0]}", step.kind)
                system.zookeeper.tamper(leader_path(JOB), data)

        system.zookeeper.arrive(write)

    def _stranger(self, step: Step) -> None:
        strangers.take(self._system, step)

    # --- the file system

    def _safe_mode(self, step: Step) -> None:
        files = self._system.files

        def begin() -> None:
            files.safe_mode = True

        def mend() -> None:
            files.safe_mode = False

        self._for(step, "the NameNode is in safe mode", begin, mend, "writes")

    def _failover(self, step: Step) -> None:
        files = self._system.files
        self._for(step, "no NameNode is active", files.stop, files.start, "files")

    def _journal(self, step: Step) -> None:
        """Lose the journal. Either it is back in time, or the next NameNode knows a share of the unwritten changes."""
        files, (share,) = self._system.files, step.how
        mend = files.regain_journal if share == "all" else partial(files.forget, float(share))
        self._for(step, "the journal cannot be written", files.lose_journal, mend, "journal")

    def _fate(self, step: Step) -> None:
        """Set a fault for the first such command, and then one for its sender."""
        self._set_fate(step, self._system.sidecars)

    def _set_fate(self, step: Step, processes: list[Sidecar]) -> None:
        aim, fate, delay, then = step.how
        system, taken = self._system, False

        def follow(process: Process) -> None:
            nonlocal taken
            if taken or self._healed:
                return
            taken = True
            system.note(f"{process.name}: a command ({aim}) is {fate}, then {then}", f"fate {fate}")
            name = self._name(process)
            if fate == "unwritten":
                self.take(Step(step.at, "journal", "", float(delay), ("0",)))
            if then != "nothing" and name:
                kind, *how = then.split()
                self.take(Step(step.at, kind, name, step.seconds, tuple(how)))

        for process in processes:
            fault = Fault(lambda command: not taken and self._is_aim(aim, command))
            if fate == "answered":
                fault.answered = partial(follow, process)
            else:
                fault.then = partial(follow, process)
            if fate == "late":
                fault.delay = float(delay)
            fault.lost = fate == "lost"
            fault.dropped = fate == "dropped"
            if fate == "refused":
                fault.error = Invalid("Refused on purpose.")
            process.faults.append(fault)

    def _is_aim(self, aim: str, command: FilesCommand) -> bool:
        if aim == "renewal during a look":
            return KINDS["renewal"](command) and any(each.looks_since(LOOKED_AT_FOR) for each in self._system.sidecars)
        return KINDS[aim](command)

    # --- operators

    def _request(self, step: Step) -> None:
        system, lease = self._system, self._system.lease
        directory = newest(system.files.list(JOB)) if lease is not None else None
        looks = step.how[0] == LOOK
        if lease is None or directory is None or system.files.safe_mode or (lease.successor and not looks):
            return
        if lease.mode is not Mode.RELEASED:
            what = "leaves a request" if looks else f"asks to hand over to {step.how[0]}"
            system.note(f"an operator {what}", step.kind)
            marked = lease.asked_to_look() if looks else lease.asked_to(step.how[0])
            record = f"{JOB}/{directory.name}/{RECORD}"
            system.files.rename(f"{record}/{lease.name}", f"{record}/{marked.name}", "operator")

    def _ask(self, step: Step) -> None:
        """Leave a request by name; the step's target is its id."""
        operator = self._system.hosts[OPERATOR]
        assert isinstance(operator, Operator), "the name is its own"
        self._system.note(f"an operator makes request {step.target}", step.kind)
        operator.ask(JOB, step.target)

    def _strike(self, step: Step) -> None:
        """Have another step befall the leader just when the NameNode renames something to a name with that in it."""
        fragment, kind, *how = step.how
        system, taken = self._system, False

        def renaming(path: str) -> None:
            nonlocal taken
            if not taken and not self._healed and fragment in path and (leader := system.leader) is not None:
                taken = True
                self.take(Step(step.at, kind, self._name(leader), step.seconds, tuple(how)))

        system.files.renaming = renaming

    def _failed_before(self, step: Step) -> None:
        """Let the job have failed so often in a row before, on another host."""
        system = self._system
        directory = newest(system.files.list(JOB)) if JOB in system.files.root.entries else None
        if directory is not None and not system.files.safe_mode:
            (failures,) = step.how
            graph = f"{JOB}/{directory.name}/{GRAPH}"
            system.files.make(graph, "operator")
            system.files.make(f"{graph}/attempts={failures}~0~~exit-3~before~0~1000", "operator")
            before = Happened(system.world.now, "operator", 0, BEFORE, float(failures))
            system.failures.happened.append(before)

    def _doubt(self, step: Step) -> None:
        """Lose the journal just before the next acceptance of a request, so that its outcome is in doubt."""
        system, taken = self._system, False

        def renaming(path: str) -> None:
            nonlocal taken
            if not taken and not self._healed and f"/{REQUESTS}/" in path and not path.endswith("=1"):
                taken = True
                self.take(Step(step.at, "journal", "", step.seconds, step.how))

        system.files.renaming = renaming

    def _pause_job(self, step: Step) -> None:
        self._for(step, "an operator pauses the job", partial(self._mark, Lease.as_paused), self._resume_job)

    def _bar(self, step: Step) -> None:
        """Bar a contender; the bar ends by itself."""
        system, directory = self._system, newest(self._system.files.list(JOB))
        if directory is not None and not system.files.safe_mode:
            until = int(system.world.now + step.seconds)
            system.note(f"an operator bars {step.target} until {until} s", step.kind)
            entry = Bar(step.target, until, "operator").name
            system.files.make(f"{JOB}/{directory.name}/{RECORD}/{entry}", "operator")
            self._mark(Lease.asked_to_look)

    def _resume_job(self) -> None:
        paused = (lease := self._system.lease) is not None and lease.paused
        if paused:
            self._mark(Lease.as_resumed)
        if paused or not self._healed:  # it may not have been done, or be forgotten with the journal
            self._system.world.after(RETRY_S, self._resume_job)

    def _mark(self, mark: Callable[[Lease], Lease]) -> None:
        """Give the job's lease another name, if the store takes writes now."""
        system, lease = self._system, self._system.lease
        directory = newest(system.files.list(JOB)) if lease is not None else None
        if lease is not None and directory is not None and not system.files.safe_mode:
            record = f"{JOB}/{directory.name}/{RECORD}"
            system.files.rename(f"{record}/{lease.name}", f"{record}/{mark(lease).name}", "operator")

    def _resign(self, step: Step) -> None:
        process = self._process(step.target)
        if process is not None and process.leads(JOB):
            self._system.note(f"{process.name} is told to give back what it leads", step.kind)
            process.run(lambda: process.contender.step_down(JOB, "It was told to."))

    # --- targets

    def _host(self, name: str) -> Host:
        leader = self._system.leader if name in ("leader", "lender") else None
        if name == "lender":  # the holder of the leader's host's session
            name = self._system.plan.lender_of(place(leader.name)) if leader is not None else ""
            leader = None
        return leader or self._system.hosts.get(name) or self._system.hosts[self._system.plan.contenders[0]]

    def _server(self, name: str) -> Server:
        """Return a server by its number, or the one that the leader, or the holder of its session, is connected to."""
        servers = self._system.zookeeper.servers
        if name not in ("leader", "lender"):
            return servers[int(name) % len(servers)]
        host = self._host("lender") if name == "lender" else self._system.leader
        return (host and host.client and host.client.server) or servers[0]

    def _name(self, host: Host) -> str:
        """Return a host's name in plans; empty if another has taken its place."""
        return next((name for name, each in self._system.hosts.items() if each is host), "")

    def _process(self, name: str) -> Process | None:
        host = self._system.hosts[name]
        return host if isinstance(host, Process) else None
