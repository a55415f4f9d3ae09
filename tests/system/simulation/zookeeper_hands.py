"""Steps that befall ZooKeeper: its servers, sessions and nodes, and strangers who change them."""

from leader.layout.information import LeaderInformation, decode, encode
from leader.layout.znodes import checkpoints_path, leader_path
from tests.system.simulation import strangers
from tests.system.simulation.disturbances import place
from tests.system.simulation.hand import Hand
from tests.system.simulation.plan import Step
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.strangers import FORGED_SESSION

FORGED_EPOCH = 4_000_000_000

FORGED_ADDRESS = "evil:1"


class ZooKeeperHands(Hand):
    """Breaks and mends the ensemble."""

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
