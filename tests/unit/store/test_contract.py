"""The contract of renames as it is tried before anybody leads: kept by each driver, and every liar is found."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from store.contract import TRIED, broken, fresh
from store.counting import REQUESTS, CountedFiles
from store.errors import AlreadyExists, DeadlineExceeded, NoSpace, NotFound, PermissionDenied, Refused, StoreError
from store.files import Files
from store.local import LocalFiles
from store.open import driver_of
from tests.unit.store.drivers import ON_HDFS, names, root_on
from tests.unit.store.test_remote_errors import answering, serving


@pytest.fixture(params=["local", *ON_HDFS])
def files(request: pytest.FixtureRequest) -> Iterator[Files]:
    opened = driver_of(root_on(request.param, request))()
    opened.make_root()
    yield opened
    opened.close()


def test_our_drivers_keep_it_and_nothing_is_left(files: Files) -> None:
    assert broken(files, fresh()) == ""
    files.make_directory("orders")
    assert broken(files, fresh("orders")) == ""
    assert (names(files, ""), names(files, "orders")) == ({"orders"}, set())


@pytest.mark.parametrize("scheme", REQUESTS)
def test_it_takes_ten_requests_at_most(scheme: str, tmp_path: Path) -> None:
    cost: Counter[str] = Counter()
    told = CountedFiles(LocalFiles(tmp_path), REQUESTS[scheme], lambda name, requests: cost.update({name: requests}))
    assert broken(told, fresh()) == ""
    assert cost.total() <= 10


class SaysDone(LocalFiles):
    """It says that a rename is done, and has not done it."""

    def rename(self, source: str, destination: str) -> None:
        with suppress(NotFound):
            self.list(source)
            return
        super().rename(source, destination)


class SaysDoneIfRefused(LocalFiles):
    """What is refused counts as done, as an answer whose content nobody reads."""

    def rename(self, source: str, destination: str) -> None:
        with suppress(Refused):
            super().rename(source, destination)


class SaysRefused(LocalFiles):
    """It says that a rename is refused, and has done it."""

    said: StoreError = NotFound("it is not there")

    def rename(self, source: str, destination: str) -> None:
        super().rename(source, destination)
        raise self.said


class SaysThatItExists(SaysRefused):
    said = AlreadyExists("it is there")


class Replaces(LocalFiles):
    """It ignores "only if absent", as POSIX does."""

    def rename(self, source: str, destination: str) -> None:
        with suppress(NotFound):
            self.list(source)
            with suppress(NotFound):
                self.delete(destination, recursive=True)
        super().rename(source, destination)


class MovesInto(LocalFiles):
    """It moves into an existing directory, as HDFS does without options."""

    def rename(self, source: str, destination: str) -> None:
        try:
            super().rename(source, destination)
        except AlreadyExists:
            super().rename(source, f"{destination}/moved")


class MovesIntoAndDenies(LocalFiles):
    """The same, and says that it has not."""

    def rename(self, source: str, destination: str) -> None:
        try:
            super().rename(source, destination)
        except AlreadyExists:
            super().rename(source, f"{destination}/moved")
            raise


class Copies(LocalFiles):
    """It copies where it should rename, as a store of objects does."""

    def rename(self, source: str, destination: str) -> None:
        self.list(source)
        if destination.rpartition("/")[2] in {each.name for each in self.list(destination.rpartition("/")[0])}:
            raise AlreadyExists(destination)
        self.make_directory(destination)


class MakesUp(LocalFiles):
    """It makes the target of a rename, whether the source is there or not."""

    def rename(self, source: str, destination: str) -> None:
        try:
            super().rename(source, destination)
        except NotFound:
            self.make_directory(destination)


LIARS = [
    SaysDone,
    SaysDoneIfRefused,
    SaysRefused,
    SaysThatItExists,
    Replaces,
    MovesInto,
    MovesIntoAndDenies,
    Copies,
    MakesUp,
]


@pytest.mark.parametrize("liar", LIARS)
def test_every_liar_is_found_in_one_sentence_and_nothing_is_left(liar: type[LocalFiles], tmp_path: Path) -> None:
    said = broken(liar(tmp_path), fresh())
    assert said.startswith(f"{tmp_path.as_uri()} can hold no jobs, because two contenders could lead there: ")
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


def test_what_a_driver_has_found_out_by_itself_is_said_in_its_own_words() -> None:
    with serving(answering("200 OK", b'{"boolean": false}')) as address:
        said = broken(driver_of(f"webhdfs://{address}/ha")(), fresh())
    assert "`renameoptions`" in said


@pytest.mark.parametrize("error", [DeadlineExceeded("no answer"), PermissionDenied("not yours"), NoSpace("full")])
@pytest.mark.parametrize("request_", range(8))
def test_what_says_nothing_about_renames_is_raised(error: StoreError, request_: int, tmp_path: Path) -> None:
    asked = 0

    def count(*_: object) -> None:
        nonlocal asked
        asked += 1
        if asked == request_ + 1:
            raise error

    told = CountedFiles(LocalFiles(tmp_path), REQUESTS["hdfs"], count)
    with pytest.raises(type(error)):
        broken(told, fresh())
    assert not list(tmp_path.iterdir())


def test_no_listing_takes_its_names_for_a_job() -> None:
    assert fresh().startswith(TRIED)
    assert fresh("orders").startswith(f"orders/{TRIED}")
    assert TRIED.startswith(".")
