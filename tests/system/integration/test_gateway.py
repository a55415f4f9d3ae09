"""Behind HttpFS, which drops the options of a rename, nobody is granted a job, and each tool says why.

The same behind a stand-in, which can be slow. It is compared with HttpFS itself.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import ha
from ha.sandbox import Sandbox
from leader.errors import InvalidSettings
from store.contract import TRIED, broken, fresh
from store.open import driver_of, open_files
from tests.patience import PATIENCE_S
from tests.system.integration.gateway import BYTES, Gateway, gateway
from tests.system.integration.httpfs import httpfs
from tests.unit.ha.programs import HA, QUICK, Program
from tests.unit.store.drivers import names

pytestmark = [pytest.mark.hdfs, pytest.mark.slow]

WHY = "its server ignores `renameoptions`, as an HttpFS gateway does"
WRONG_USAGE = 2
ITSELF = "HttpFS"
SLOW_S = (0.0, 0.02, 0.25, 1.0)
"""Seconds that a rename waits in the stand-in."""

MOST_REQUESTS = 10
"""Of a trial, for each root and process."""

STEPS = (
    ("PUT", "/one", {"op": "MKDIRS", "permission": "700"}, ""),
    ("PUT", "/two", {"op": "MKDIRS"}, ""),
    ("PUT", "/none", {"op": "RENAME", "destination": "/three", "renameoptions": "NONE"}, ""),
    ("PUT", "/one", {"op": "RENAME", "destination": "/two", "renameoptions": "NONE"}, ""),
    ("GET", "/two", {"op": "LISTSTATUS"}, ""),
    ("PUT", "/two", {"op": "RENAME", "destination": "/three", "renameoptions": "NONE"}, ""),
    ("PUT", "/two", {"op": "RENAME", "destination": "/three", "renameoptions": "NONE"}, ""),
    ("GET", "/two", {"op": "LISTSTATUS"}, ""),
    ("PUT", "/file", {"op": "CREATE", "overwrite": "false"}, ""),
    ("PUT", "/file", {"op": "CREATE", "overwrite": "false", "data": "true"}, "text/plain"),
    ("PUT", "/file", {"op": "CREATE", "overwrite": "false", "data": "true"}, BYTES),
    ("PUT", "/file", {"op": "CREATE", "overwrite": "false", "data": "true"}, BYTES),
    ("GET", "/file", {"op": "LISTSTATUS"}, ""),
    ("GET", "/file", {"op": "OPEN", "length": "9"}, ""),
    ("GET", "/none", {"op": "OPEN", "length": "9"}, ""),
    ("PUT", "/file", {"op": "RENAME", "destination": "/three", "renameoptions": "OVERWRITE"}, ""),
    ("DELETE", "/none", {"op": "DELETE", "recursive": "false"}, ""),
    ("DELETE", "/three", {"op": "DELETE", "recursive": "false"}, ""),
    ("DELETE", "/three", {"op": "DELETE", "recursive": "true"}, ""),
)
"""Method, path and parameters of a request, and the content type with which it sends bytes."""


@pytest.fixture(scope="module")
def served(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """HttpFS itself, before the sandbox's NameNode."""
    with httpfs(tmp_path_factory.mktemp("httpfs"), Path(sandbox.environment()["HADOOP_CONF_DIR"])) as it:
        yield it


@pytest.fixture(params=[ITSELF, *SLOW_S])
def between(request: pytest.FixtureRequest, webhdfs_uri: str) -> Iterator[Gateway]:
    """What stands before the NameNode: HttpFS, or the stand-in."""
    if request.param == ITSELF:
        yield request.getfixturevalue("served")
        return
    with gateway(urlsplit(webhdfs_uri).netloc, request.param) as it:
        yield it


@pytest.fixture
def direct(webhdfs_uri: str, tmp_path: Path) -> str:
    """A root that is there, by the NameNode's own address."""
    uri = f"{webhdfs_uri}/{tmp_path.name}"
    with open_files(uri) as files:
        files.call("make the root", lambda driver: driver.make_root(), PATIENCE_S)
    return uri


@pytest.fixture
def root(direct: str, between: Gateway) -> str:
    """The same root, by the gateway's address."""
    return f"webhdfs://{between.address}{urlsplit(direct).path}"


def environment(root: str) -> dict[str, str]:
    return {**QUICK, "HA_FILES": root, "HA_ZOOKEEPER": "", "PATH": "/usr/bin:/bin"}


def tries(between: Gateway, root: str) -> list[str]:
    """What was asked of the gateway to try a root, until now."""
    return [path for path in between.asked() if f"{urlsplit(root).path}/{TRIED}" in path]


def left(direct: str) -> set[str]:
    with open_files(direct) as files:
        return files.call("list", lambda driver: names(driver, ""), PATIENCE_S) - {".staging"}


def test_of_four_sidecars_none_leads(between: Gateway, root: str, direct: str, tmp_path: Path) -> None:
    led = tmp_path / "led"
    writes = [sys.executable, "-c", f"open({str(led)!r}, 'a').write('x')"]
    programs = []
    for name in "abcd":
        folder = tmp_path / name
        folder.mkdir()
        programs.append(Program([*HA, "run", "orders", "--contender", name, "--", *writes], folder, environment(root)))
    try:
        for each in programs:
            assert each.wait() == WRONG_USAGE
            assert f"{root} can hold no jobs, because {WHY}" in each.said
            assert "let `files` name the WebHDFS of the NameNodes themselves, or hdfs://" in each.said
    finally:
        for each in programs:
            each.end()
    assert not led.exists()
    assert len(programs) <= len(tries(between, root)) <= MOST_REQUESTS * len(programs)
    assert left(direct) == set()


def test_a_daemon_contends_for_none_of_its_jobs_and_tries_once(between: Gateway, root: str, tmp_path: Path) -> None:
    command = [*HA, "host", "daemon", "orders", "payments", "--listen", "127.0.0.1:0"]
    daemon = Program(command, tmp_path, environment(root))
    try:
        for job in ("orders", "payments"):
            daemon.until_said(f"{job}: {root} can hold no jobs, because {WHY}")
        assert daemon.process.poll() is None
    finally:
        daemon.end()
    assert 1 <= len(tries(between, root)) <= MOST_REQUESTS


def test_the_doctor_says_it(root: str, tmp_path: Path) -> None:
    doctor = Program([*HA, "host", "doctor"], tmp_path, environment(root))
    try:
        assert doctor.wait() == 1
        said = doctor.output.read_text()
    finally:
        doctor.end()
    assert re.search(rf"^failed +replacing +{root} can hold no jobs, because {WHY}", said, re.MULTILINE), said


def test_a_program_that_leads_by_itself_is_told_and_nothing_is_left(root: str, direct: str) -> None:
    block = ha.lead("orders", files=root, zookeeper="", timeout=PATIENCE_S)
    with pytest.raises(InvalidSettings, match="ignores `renameoptions`"), block:
        raise AssertionError("it leads")
    assert left(direct) == set()


def test_the_try_costs_no_more_than_three_requests_there(between: Gateway, root: str) -> None:
    driver = driver_of(root)()
    assert WHY in broken(driver, fresh())
    driver.close()
    asked = tries(between, root)
    assert len({path.removesuffix("-a").removesuffix("-b") for path in asked}) == 1
    assert len(asked) <= 3  # a rename of nothing, and what it could have left is deleted


def answers(address: str, folder: str) -> list[tuple[object, ...]]:
    """What a gateway answers to the steps in a folder of its own: the status, and what matters of the body."""
    connection = HTTPConnection(address, timeout=PATIENCE_S)
    found = list[tuple[object, ...]]()
    for method, path, parameters, content_type in STEPS:
        query = {"user.name": os.environ["HADOOP_USER_NAME"], **parameters}
        if "destination" in query:
            query["destination"] = folder + query["destination"]
        headers = {"Content-Type": content_type} if content_type else {}
        body = b"abc" if content_type else None
        connection.request(method, f"/webhdfs/v1{folder}{path}?{urlencode(query)}", body, headers)
        answer = connection.getresponse()
        location = re.sub(rf"^http://{address}/webhdfs/v1{folder}", "", answer.headers["Location"] or "")
        found.append((answer.status, location.partition("?")[0], _told(answer.read(), folder, address)))
    connection.close()
    return found


def _told(body: bytes, folder: str, address: str) -> object:
    try:
        told = json.loads(body)
    except ValueError:
        return body
    if "RemoteException" in told:
        return told["RemoteException"]["exception"]
    if "FileStatuses" in told:
        return [(each["pathSuffix"], each["type"], each["length"]) for each in told["FileStatuses"]["FileStatus"]]
    return {name: str(each).replace(folder, "").replace(address, "") for name, each in told.items()}


def test_the_stand_in_answers_as_httpfs_does(served: Gateway, direct: str) -> None:
    path = urlsplit(direct).path
    with gateway(urlsplit(direct).netloc) as stand_in:
        ours, theirs = answers(stand_in.address, f"{path}/ours"), answers(served.address, f"{path}/theirs")
    assert ours == theirs
    assert (HTTPStatus.OK, "", {"boolean": "False"}) in theirs
    assert theirs[4] == (HTTPStatus.OK, "", [("one", "DIRECTORY", 0)])  # it was moved into the directory
