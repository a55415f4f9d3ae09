"""Steps that befall hosts: their processes, and the links between them and to the stores."""

from functools import partial

from tests.system.simulation.disturbances import place
from tests.system.simulation.files_hands import FilesHands
from tests.system.simulation.plan import Step
from tests.system.simulation.process import Process
from tests.system.simulation.sidecar import Sidecar


class HostHands(FilesHands):
    """Breaks and mends hosts and links."""

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
