"""Policies for new jobs, and the load that NameNodes report: here servers that say what a test wants."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner

from ha.cli import move as cli
from ha.cli.commands import app, exit_code
from ha.placement import load as module
from ha.placement.load import (
    ACTIVITY,
    Load,
    RootView,
    by_hash,
    by_jobs,
    by_rpc,
    load_of,
    overview,
    places,
    policy,
    session_of,
    web_addresses,
)
from store.bounded import BoundedFiles
from store.errors import Invalid, NotSent
from store.local import LocalFiles
from tests.unit.ha.clocks import At
from tests.unit.ha.placement.roots import Roots
from tests.unit.ha.placement.test_group_files import create, move
from tests.unit.ha.web_servers import web_servers

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with web_servers() as start:

        def namenode(*ports: dict[str, float], state: str = "active", status: int = 200) -> str:
            def answer(path: str) -> tuple[int, bytes]:
                found = list(ports) if ACTIVITY in path else [{"State": state}]
                return status, json.dumps({"beans": found}).encode()

            return start(answer)

        yield namenode


def port(requests: int = 0, queue: float = 0.0, length: int = 0, processing: float = 0.0) -> dict[str, float]:
    return {
        "RpcQueueTimeNumOps": requests,
        "RpcQueueTimeAvgTime": queue,
        "RpcProcessingTimeAvgTime": processing,
        "CallQueueLength": length,
    }


def opened(*uris: str) -> list[BoundedFiles]:
    return [BoundedFiles(lambda: LocalFiles(Path("/nowhere")), uri=each) for each in uris]


def test_the_ports_of_a_namenode_are_added_up(serve: Serve) -> None:
    address = serve(port(100, 2.5, 3, 1.0), port(10, 0.5, 1, 4.0))
    assert load_of(f"webhdfs://{address}/ha") == Load(f"http://{address}", 110, 2.5, 4.0, 4)


def test_the_active_one_of_two_is_asked(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standby, active = serve(port(1), state="standby"), serve(port(2))
    names = {"nn1": standby, "nn2": active}
    pairs = [("dfs.ha.namenodes.ns1", "nn1,nn2")]
    pairs += [(f"dfs.namenode.http-address.ns1.{name}", address) for name, address in names.items()]
    site(tmp_path, pairs)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert load_of("hdfs://ns1/ha").requests == 2


def test_a_namenode_that_is_alone_is_not_asked_for_its_state(serve: Serve) -> None:
    assert load_of(f"webhdfs://{serve(port(7), state='standby')}/ha").requests == 7


def test_two_standbys_have_no_load_as_is_said(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("dfs.ha.namenodes.ns1", "nn1,nn2")]
    pairs += [(f"dfs.namenode.http-address.ns1.nn{each}", serve(port(1), state="standby")) for each in (1, 2)]
    site(tmp_path, pairs)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(NotSent, match=r"\(none is active\)"):
        load_of("hdfs://ns1/ha")


def test_servers_are_asked_with_kerberos_only_if_hadoop_has_it_and_with_the_authorities_that_are_named() -> None:
    plain = session_of({}, "")
    assert (plain.auth, plain.verify, plain.trust_env) == (None, True, False)
    assert session_of({"hadoop.security.authentication": "simple"}, "/ca.pem").verify == "/ca.pem"
    pytest.importorskip("requests_kerberos")
    assert session_of({"hadoop.security.authentication": "Kerberos"}, "").auth is not None


def site(folder: Path, pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in pairs)
    (folder / "hdfs-site.xml").write_text(f"<configuration>{text}</configuration>")


def test_the_web_server_of_an_address_is_found_by_its_suffix() -> None:
    known = {
        "dfs.namenode.rpc-address.ns1": "h1:8020",
        "dfs.namenode.rpc-address.ns2": "h2:8020",
        "dfs.namenode.http-address.ns1": "h1:1234",
        "dfs.namenode.http-address.ns2": "h2:5678",
    }
    assert web_addresses("hdfs://h2:8020/ha", known) == ["http://h2:5678"]
    assert web_addresses("hdfs://h3:8020/ha", known) == ["http://h3:9870"]
    assert web_addresses("hdfs://h3:8020/ha", {"dfs.http.policy": "HTTPS_ONLY"}) == ["https://h3:9871"]
    assert web_addresses("swebhdfs://h3:9871/ha", {}) == ["https://h3:9871"]
    with pytest.raises(Invalid, match="has no NameNode"):
        web_addresses("file:///ha", {})


@pytest.mark.parametrize(("broken", "why"), [({"status": 503}, "HTTP 503"), ({}, "no bean")])
def test_a_namenode_that_says_nothing_of_use_is_an_error(serve: Serve, broken: dict[str, int], why: str) -> None:
    with pytest.raises(NotSent, match=rf"says by JMX how loaded it is \({why}"):
        load_of(f"webhdfs://{serve(**broken)}/ha")


def test_the_shortest_wait_gets_the_job_then_the_shortest_queue(serve: Serve) -> None:
    slow, full, best = (f"webhdfs://{serve(each)}/ha" for each in (port(0, 9.0, 0), port(0, 1.04, 7), port(0, 1.01, 6)))
    assert {by_rpc(opened(slow, full, best), f"job-{number}") for number in range(9)} == {best}
    assert {by_rpc(opened(slow, full), f"job-{number}") for number in range(9)} == {full}


def test_without_a_load_the_name_decides(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    roots = opened(f"webhdfs://{serve(port())}/ha", f"webhdfs://{serve(port(), status=500)}/ha")
    assert [by_rpc(roots, each) for each in "abcdef"] == [by_hash(roots, each) for each in "abcdef"]
    assert "is placed by its name" in caplog.text


def test_the_fewest_jobs_get_the_next_one(roots: Roots) -> None:
    group = roots.group()
    here = list(group.roots.values())
    for uri, jobs in zip(roots.uris, (2, 1, 3), strict=True):
        roots.drivers[uri].make_root()
        for number in range(jobs):
            roots.drivers[uri].make_directory(f"{uri[-1]}-{number}")
    for number in range(3):
        roots.drivers[roots.uris[1]].make_directory(f".hidden-{number}")
    assert {by_jobs(here, f"job-{number}") for number in range(9)} == {roots.uris[1]}


def test_an_empty_root_has_no_jobs_and_of_equals_the_home_is_taken(roots: Roots) -> None:
    here = list(roots.group().roots.values())
    assert [by_jobs(here, each) for each in "abcdef"] == [by_hash(here, each) for each in "abcdef"]


def test_each_policy_has_its_name() -> None:
    assert policy("hash") is by_hash
    assert policy("least-jobs") is by_jobs
    assert policy("least-rpc", "ca").func is by_rpc  # type: ignore[attr-defined]


def jobs_of(roots: Roots) -> dict[str, list[str] | None]:
    return {root: jobs for root, (jobs, _) in places(roots.group()).items()}


def test_each_job_is_shown_once_where_it_lies(roots: Roots) -> None:
    jobs, away = [f"job-{number}" for number in range(9)], roots.others("job-0")[0]
    for job in jobs:
        create(roots.group(), job)
    move(roots, roots.home("job-0"), away, "job-0")
    found = jobs_of(roots)
    assert sorted(job for each in found.values() for job in each or []) == jobs
    assert "job-0" in (found[away] or [])


def test_a_root_that_is_away_is_not_known_and_its_jobs_are_nobody_elses(roots: Roots) -> None:
    create(roots.group())
    gone = roots.home("orders")
    roots.drivers[gone].down = True
    assert jobs_of(roots) == {root: None if root == gone else [] for root in roots.uris}
    assert "The NameNode is away" in str(places(roots.group())[gone][1])


def test_of_a_root_that_is_away_a_job_that_has_moved_there_is_not_shown_where_it_was(roots: Roots) -> None:
    home, away = roots.home("orders"), roots.others("orders")[0]
    create(roots.group())
    move(roots, home, away)
    roots.drivers[away].down = True
    assert jobs_of(roots) == {root: None if root == away else [] for root in roots.uris}


def test_requests_are_counted_over_the_time_that_has_passed(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {root: 100 * number for number, root in enumerate(roots.uris)}

    def load(root: str, ca: str) -> Load:
        assert ca == "ca"
        if root == roots.uris[2]:
            raise NotSent("silent")
        counts[root] += 30
        return Load("http://nn", counts[root], 1.5, 0.5, 2)

    monkeypatch.setattr(module, "load_of", load)

    monkeypatch.setattr(module, "ThreadPoolExecutor", _InTurn)
    first, second, third = overview(roots.group(), 12.0, "ca", At())
    assert (first.requests_per_second, first.queue_ms, first.processing_ms, first.queue_length) == (2.5, 1.5, 0.5, 2)
    assert second.requests_per_second == 2.5
    assert (third.requests_per_second, third.problem, third.jobs) == (None, "silent", [])


class _InTurn:
    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = staticmethod(map)


def test_the_command_shows_them_and_says_what_is_not_known(roots: Roots) -> None:
    create(roots.group())
    files = ",".join(roots.uris)
    done = CliRunner().invoke(app, ["job", "roots", "--files", files, "--zookeeper", "", "--interval", "0.01"])
    assert done.exit_code == 0
    assert all(root in done.stdout for root in roots.uris)
    assert "has no NameNode that could be asked" in done.stderr
    done = CliRunner().invoke(
        app, ["job", "roots", "--json", "--interval", "0.01", "--files", files, "--zookeeper", ""]
    )
    found = {each["root"]: each["jobs"] for each in json.loads(done.stdout)}
    assert found[roots.home("orders")] == ["orders"]


def test_the_command_says_how_uneven_the_load_is(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [RootView(root, [], rate) for root, rate in zip(roots.uris, (90.0, 0.0, 45.0), strict=True)]
    monkeypatch.setattr(cli, "overview", lambda *_: views)
    done = CliRunner().invoke(app, ["job", "roots", "--files", ",".join(roots.uris), "--zookeeper", ""])
    assert "The most loaded root takes 2.00 times the mean." in done.stdout


def test_one_root_is_no_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["job", "roots", "--files", tmp_path.as_uri(), "--zookeeper", ""]) == 2
    assert "which is one root: set `files` to a group" in capsys.readouterr().err
