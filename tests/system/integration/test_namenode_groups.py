"""A group of two NameNodes on real servers: jobs on both, their load, and one NameNode killed."""

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

import ha
from ha.cli.commands import app
from ha.placement.place import home_of
from ha.sandbox import Sandbox
from leader.errors import Fenced, InvalidSettings, NoLeader, NotLeader, Unreachable
from leader.layout import tree
from store.clock import now
from store.errors import AlreadyExists
from store.open import open_files
from tests.limits import HANGS_S
from tests.system.integration.participants import new_job

pytestmark = [pytest.mark.hdfs, pytest.mark.slow]

BATCHES = 20
REFRESHED = "11 s"
"""After this time a NameNode says something new by JMX."""

WITHIN_S = 60.0
ALONE: dict[str, Any] = {"zookeeper": "", "snapshots": "off"}


def site(folder: Path, addresses: Mapping[str, str]) -> None:
    text = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in addresses.items()
    )
    (folder / "hdfs-site.xml").write_text(f"<configuration>{text}</configuration>")
    (folder / "core-site.xml").write_text("<configuration></configuration>")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("other"))
    made.up()
    yield made
    made.down(wipe=True)


@pytest.fixture
def roots(sandbox: Sandbox, other: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Both roots; the second one is on the HDFS that may be killed."""
    found, addresses = list[str](), dict[str, str]()
    for number, each in enumerate((sandbox, other), 1):
        known = each.environment()
        found.append(known["HA_FILES"].removesuffix("/ha") + "/groups")
        addresses[f"dfs.namenode.rpc-address.ns{number}"] = urlsplit(known["HA_FILES"]).netloc
        addresses[f"dfs.namenode.http-address.ns{number}"] = urlsplit(known["HA_SANDBOX_WEBHDFS"]).netloc
    site(tmp_path, addresses)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return found


def job_at(roots: list[str], root: str) -> str:
    while home_of(roots, job := new_job()) != root:
        pass
    return job


def shown(files: str, interval: str = "0.1") -> tuple[int, dict[str, dict[str, object]]]:
    done = CliRunner().invoke(app, ["job", "roots", "--json", "--interval", interval, "--files", files])
    return done.exit_code, {each["root"]: each for each in json.loads(done.stdout)}


def test_a_namenode_that_is_killed_takes_no_job_of_the_other_along(roots: list[str], other: Sandbox) -> None:
    files = ",".join(roots)
    stays, goes = (job_at(roots, each) for each in roots)
    with ha.lead(stays, timeout=WITHIN_S, files=files, **ALONE) as leads:
        with ha.lead(goes, timeout=WITHIN_S, files=files, **ALONE), ha.connect(files=files, **ALONE) as client:
            assert {job: client.leader(job, WITHIN_S).job for job in (stays, goes)} == {stays: stays, goes: goes}
            for job, root in zip((stays, goes), roots, strict=True):
                with open_files(root) as directly:
                    entries = directly.call("list", lambda each: each.list(""), WITHIN_S)
                assert job in {each.name for each in entries}
            code, found = shown(files, REFRESHED)
            assert code == 0
            for job, root in zip((stays, goes), roots, strict=True):
                assert job in found[root]["jobs"]  # type: ignore[operator]
                assert float(str(found[root]["requests_per_second"])) > 0
                assert found[root]["queue_length"] is not None

            other.kill("namenode-1")
            for batch in range(BATCHES):
                leads.checkpoints.completed("daily", batch)
            assert leads.is_leader()
            with ha.connect(files=files, **ALONE) as anew:
                assert anew.leader(stays, WITHIN_S).session_id == leads.session_id
                with pytest.raises(Unreachable):
                    anew.leader(goes, 2.0)
            code, found = shown(files)
            assert (code, found[roots[1]]["jobs"]) == (1, None)
            assert stays in found[roots[0]]["jobs"]  # type: ignore[operator]

            other.up()  # until its DataNode takes files for the NameNode that is back
            assert eventually(client, goes)
        assert leads.is_leader()


class Program:
    """A program that completes batches and writes beside them, for as long as it leads, and contends again after."""

    def __init__(self, job: str, settings: Mapping[str, Any]) -> None:
        self._job, self._settings = job, settings
        self._stop = threading.Event()
        self.batches: list[tuple[str, int]] = []
        self._pool = ThreadPoolExecutor(1)
        self._ended = self._pool.submit(self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            with ha.lead(self._job, timeout=WITHIN_S, **self._settings) as leads, suppress(Fenced, NotLeader):
                done = leads.checkpoints.latest("daily")
                batch = -1 if done is None else done.batch
                while leads.is_leader() and not self._stop.is_set():
                    batch += 1
                    with suppress(AlreadyExists):  # written, and not noted as completed before the job stood still
                        leads.own.put(b"%d" % batch, f"blobs/batch-{batch}=1")
                    leads.checkpoints.completed("daily", batch)
                    self.batches.append((leads.directory, batch))

    def reach(self, directory: str, count: int) -> None:
        end = now() + WITHIN_S
        while sum(each.startswith(directory) for each, _ in self.batches) < count:
            assert now() < end
            assert not self._ended.done(), self._ended.result()
            self._stop.wait(0.05)

    def stop(self) -> None:
        self._stop.set()
        self._ended.result(HANGS_S)
        self._pool.shutdown()


def test_a_job_moves_to_the_other_namenode_while_it_runs(roots: list[str], sandbox: Sandbox) -> None:
    files, job = ",".join(roots), job_at(roots, roots[0])
    settings = {**ALONE, "files": files, "zookeeper": sandbox.environment()["HA_ZOOKEEPER"]}
    flags = ("--files", files, "--zookeeper", settings["zookeeper"])
    program = Program(job, settings)
    try:
        program.reach(roots[0], 3)
        done = CliRunner().invoke(app, ["job", "move", job, "--to", urlsplit(roots[1]).netloc, "--json", *flags])
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout.splitlines()[-1])
        program.reach(roots[1], 3)
    finally:
        program.stop()
    assert (said["source"], said["target"]) == tuple(roots)
    assert said["pause"] < WITHIN_S
    batches = [batch for _, batch in program.batches]
    assert batches == list(range(len(batches)))  # none is missing, none is done twice
    with open_files(roots[1]) as there, open_files(roots[0]) as here:
        leader = there.call("find", lambda each: tree.find(each, job), WITHIN_S)
        blobs = there.call("list", lambda each: each.list(f"{job}/{leader.name}/blobs"), WITHIN_S)
        assert len(blobs) == len(batches)
        (left,) = here.call("list", lambda each: each.list(job), WITHIN_S)
        assert here.call("list", lambda each: each.list(f"{job}/{left.name}"), WITHIN_S) == []
    with ha.connect(files=files, **ALONE) as client, pytest.raises(NoLeader):
        client.leader(job, 0.5)
    done = CliRunner().invoke(app, ["job", "move", job, "--to", roots[0], *flags])
    assert done.exit_code == 1
    assert "stays for 30 min more" in str(done.exception)


def eventually(client: ha.Client, job: str) -> bool:
    """Whether somebody can say again who leads the job; its leader may have given up meanwhile."""
    end = now() + WITHIN_S
    while now() < end:
        try:
            return client.leader(job, 2.0).job == job
        except NoLeader:
            return True
        except Unreachable:
            continue
    return False


def test_a_root_of_viewfs_is_the_one_that_is_mounted_there(roots: list[str], tmp_path: Path) -> None:
    """Leaders and readers that name it by the mount table, and by its own name; one ends, and the next one leads."""
    entries = {f"fs.viewfs.mounttable.c.link./jobs/{number}": root for number, root in enumerate(roots)}
    site(tmp_path, entries)
    job = new_job()
    with ha.lead(job, timeout=WITHIN_S, files="viewfs://c/jobs/0", **ALONE) as first:
        assert first.directory.startswith(f"{roots[0]}/{job}/")
        first.checkpoints.completed("daily", 1)
        for files in ("viewfs://c/jobs/0", roots[0], "viewfs://c/jobs/0,viewfs://c/jobs/1", ",".join(roots)):
            with ha.connect(files=files, **ALONE) as client:
                assert client.leader(job, WITHIN_S).session_id == first.session_id
    with ha.lead(job, timeout=WITHIN_S, files=roots[0], **ALONE) as second:
        assert second.epoch == first.epoch + 1
        newest = second.checkpoints.latest("daily")
        assert newest is not None
        assert newest.batch == 1
    with pytest.raises(InvalidSettings, match="/jobs/0 is another mount point below it"):
        ha.connect(files="viewfs://c/jobs", **ALONE)


def test_a_new_job_goes_where_requests_wait_least_and_is_found_by_others(roots: list[str]) -> None:
    files, job = ",".join(roots), new_job()
    with (
        ha.lead(job, timeout=WITHIN_S, files=files, placement="least-rpc", **ALONE) as leads,
        ha.connect(files=",".join(reversed(roots)), **ALONE) as client,
    ):
        assert client.leader(job, WITHIN_S).session_id == leads.session_id
        assert any(leads.directory.startswith(f"{each}/{job}/") for each in roots)
