"""The trial of the roots: nobody contends before a root has kept the contract, and each is tried once."""

import queue
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import ha
from ha.config.sources import load
from ha.daemon.process import ContendingProcess
from ha.leadership import eligibility
from ha.leadership.eligibility import Trial
from ha.leadership.notices import NoticeQueue, RefusalNotice
from ha.placement.group_files import GroupFiles
from leader.errors import InvalidSettings
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import DeadlineExceeded, NoSpace, NotWritable, PermissionDenied, Refused, StoreError
from store.local import LocalFiles
from tests.patience import PATIENCE_S


class Steps:
    """The runtime's thread, as far as it is needed here: it runs what was posted when it is told to."""

    def __init__(self) -> None:
        self.posted: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.later: list[tuple[float, Callable[[], None]]] = []

    def post(self, callback: Callable[[], object]) -> None:
        self.posted.put(callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        self.later.append((when, callback))

    def run(self, until: Callable[[], object]) -> None:
        while not until():
            self.posted.get(timeout=PATIENCE_S)()


class Told:
    """What a job is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def ask(self, tried: Trial, job: str = "orders") -> "Told":
        tried.then(job, lambda: self.heard.append("may contend"), self.heard.append)
        return self


class Root:
    """A root whose answers a test changes, and whose changes are counted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.error, self.changes = folder, None, 0  # type: Path, StoreError | None, int
        self.spared = ""
        """Paths that begin with this have no error."""
        self.lies = False
        root = self

        class Driver(LocalFiles):
            def _change(self, path: str) -> None:
                root.changes += 1
                if root.error is not None and not (root.spared and path.startswith(root.spared)):
                    raise type(root.error)(f"{root.error}: {path}")  # as HDFS's: with a name that is new in each try

            def make_directory(self, path: str) -> None:
                self._change(path)
                super().make_directory(path)

            def rename(self, source: str, destination: str) -> None:
                if not isinstance(root.error, NoSpace):
                    self._change(source)
                with suppress(Refused) if root.lies else ExitStack():
                    super().rename(source, destination)

        self.files = BoundedFiles(lambda: Driver(folder, durable=False), uri=folder.as_uri())


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eligibility, "_kept", set())


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[list[Root]]:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(Root(tmp_path / name))
    yield made
    for each in made:
        each.files.close()


def begun(root: Root, steps: Steps) -> Trial:
    return Trial(steps, root.files, Timing())  # type: ignore[arg-type]


def test_several_jobs_of_one_process_contend_after_one_try(roots: list[Root]) -> None:
    steps, root = Steps(), roots[0]
    tried = begun(root, steps)
    first, second = Told().ask(tried), Told().ask(tried, "payments")
    steps.run(lambda: second.heard)
    assert (first.heard, second.heard) == (["may contend"], ["may contend"])
    changes = root.changes
    assert changes <= 8
    again, another = Told().ask(tried), Told().ask(begun(root, steps))
    steps.run(lambda: another.heard)
    assert again.heard == another.heard == ["may contend"]
    assert root.changes == changes
    assert not list(root.folder.iterdir())


def test_a_root_that_breaks_the_contract_is_refused_for_each_job(roots: list[Root]) -> None:
    steps, root = Steps(), roots[0]
    root.lies = True
    tried = begun(root, steps)
    first, second = Told().ask(tried), Told().ask(tried, "payments")
    steps.run(lambda: second.heard)
    assert first.heard == second.heard
    assert first.heard[0].startswith(f"{root.files.uri} can hold no jobs, because two contenders could lead there: ")


@pytest.mark.parametrize("error", [DeadlineExceeded("no answer"), NotWritable("safe mode")])
def test_a_store_that_does_not_answer_proves_nothing_and_is_asked_again(
    roots: list[Root], error: StoreError, caplog: pytest.LogCaptureFixture
) -> None:
    steps, root = Steps(), roots[0]
    root.error, before = error, now()
    tried = begun(root, steps)
    told = Told().ask(tried)
    for number in range(1, 4):
        steps.run(lambda number=number: len(steps.later) == number)  # type: ignore[misc]
        steps.later[-1][1]()
    assert [caplog.text.count("could not be tried yet"), told.heard] == [1, []]
    assert tried.said.startswith(f"{root.files.uri} could not be tried yet: {error}: ")
    steps.run(lambda: len(steps.later) == 4)
    assert before < steps.later[0][0] < steps.later[-1][0] <= now() + Timing().renewal
    root.error = None
    steps.later[-1][1]()
    steps.run(lambda: told.heard)
    assert told.heard == ["may contend"]


def test_another_error_of_the_store_is_told_as_well(roots: list[Root], caplog: pytest.LogCaptureFixture) -> None:
    steps, root = Steps(), roots[0]
    Told().ask(begun(root, steps))
    for number, kind in enumerate([NotWritable, DeadlineExceeded, DeadlineExceeded], 1):
        root.error = kind("why")
        if steps.later:
            steps.later[-1][1]()
        steps.run(lambda number=number: len(steps.later) == number)  # type: ignore[misc]
    assert caplog.text.count("could not be tried yet") == 2


def test_a_job_that_is_given_up_is_told_nothing(roots: list[Root]) -> None:
    steps, root = Steps(), roots[0]
    tried = begun(root, steps)
    gone, there = Told().ask(tried), Told().ask(tried, "payments")
    tried.forget("orders")
    steps.run(lambda: there.heard)
    assert gone.heard == []


@pytest.mark.parametrize("lies", [False, True])
def test_who_may_not_write_at_the_root_tries_it_in_the_job(roots: list[Root], *, lies: bool) -> None:
    steps, root = Steps(), roots[0]
    (root.folder / "orders").mkdir()
    root.error, root.spared, root.lies = PermissionDenied("not yours"), "orders/", lies
    told = Told().ask(begun(root, steps))
    steps.run(lambda: told.heard)
    assert (told.heard == ["may contend"]) is not lies
    assert not list((root.folder / "orders").iterdir())


def test_who_may_not_write_in_the_job_either_waits(roots: list[Root]) -> None:
    steps, root = Steps(), roots[0]
    root.error = PermissionDenied("not yours")
    told = Told().ask(begun(root, steps))
    steps.run(lambda: steps.later)
    assert told.heard == []


@pytest.mark.parametrize("lies", [False, True])
def test_a_full_root_lets_takeovers_go_on_unless_its_first_answer_is_wrong(
    roots: list[Root], caplog: pytest.LogCaptureFixture, *, lies: bool
) -> None:
    steps, root = Steps(), roots[0]
    root.error, root.lies = NoSpace("The NameSpace quota is exceeded"), lies
    told = Told().ask(begun(root, steps))
    steps.run(lambda: told.heard)
    assert (told.heard == ["may contend"]) is not lies
    assert ("could not be tried in full" in caplog.text) is not lies


def test_a_root_that_does_not_exist_yet_is_made(tmp_path: Path) -> None:
    steps, root = Steps(), Root(tmp_path / "new")
    told = Told().ask(begun(root, steps))
    steps.run(lambda: told.heard)
    assert told.heard == ["may contend"]
    root.files.close()


def test_of_a_group_a_job_needs_the_root_where_it_lies_and_a_new_one_all(roots: list[Root]) -> None:
    steps, (one, two) = Steps(), roots
    group = GroupFiles([one.files, two.files], lambda *_: one.files.uri)
    group.remember("orders", one.files.uri)
    group.remember("payments", two.files.uri)
    two.error = DeadlineExceeded("no answer")
    tried = Trial(steps, group, Timing())  # type: ignore[arg-type]
    here, there, new = Told().ask(tried), Told().ask(tried, "payments"), Told().ask(tried, "returns")
    steps.run(lambda: here.heard and steps.later)
    assert (here.heard, there.heard, new.heard) == (["may contend"], [], [])
    two.error, two.lies = None, True
    steps.later[-1][1]()
    steps.run(lambda: new.heard)
    assert there.heard == new.heard
    assert there.heard[0].startswith(f"{two.files.uri} can hold no jobs")


@pytest.fixture
def replacing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root replaces where it should refuse."""

    def rename(self: LocalFiles, source: str, destination: str) -> None:
        with suppress(StoreError):
            self.delete(destination, recursive=True)
        renamed(self, source, destination)

    renamed = LocalFiles.rename
    monkeypatch.setattr(LocalFiles, "rename", rename)


@pytest.mark.usefixtures("replacing")
def test_a_program_that_would_lead_there_ends_with_the_sentence(quick: Path) -> None:
    with pytest.raises(InvalidSettings, match="two contenders could lead there"), ha.lead("orders", timeout=PATIENCE_S):
        pytest.fail("It leads.")
    assert not list(quick.iterdir())


@pytest.mark.usefixtures("replacing")
def test_a_process_that_would_lead_there_is_refused_and_shows_why(quick: Path) -> None:
    process, notices = ContendingProcess(load({"contender": "a"})), NoticeQueue()
    try:
        process.join("orders", notices)
        process.contend("orders", {})
        while not isinstance(notice := notices.get(PATIENCE_S), RefusalNotice):
            assert notice is not None
        assert "two contenders could lead there" in notice.sentence
        assert process.statuses()["orders"]["not_eligible"] == notice.sentence
    finally:
        process.close()
    assert not list(quick.iterdir())
