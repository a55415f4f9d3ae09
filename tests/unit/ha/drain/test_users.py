"""Several users of one root: each has jobs that the others may not read, and all are told that a host is drained."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.drain.drain import HostDrain, for_all_users
from ha.views.jobs import NOT_YOURS, summaries
from ha.views.leases import Leases
from ha.views.remarks import remarks
from leader.job import barring
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.bar import Bar
from store.clock import wall
from store.errors import PermissionDenied
from store.local import LocalFiles

ALICE, BOB = 70_001, 70_002
PRIVATE = 0o700

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="Only root can be several users.")


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root that is everybody's, with a job of Alice's and one of Bob's."""
    for each in (tmp_path, *tmp_path.parents):
        if each == Path(tempfile.gettempdir()).parent:
            break
        each.chmod(each.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)  # those users are in the group of root
    made = tmp_path / "jobs"
    made.mkdir()
    made.chmod(0o1777)
    for job, uid in (("alices", ALICE), ("bobs", BOB)):
        with as_user(uid):
            tree.create(LocalFiles(made, durable=False, directory_mode=PRIVATE), job)
    return made


@pytest.fixture
def stores(root: Path) -> Iterator[Stores]:
    with closing(Stores(Settings.of(files=root.as_uri()))) as found:
        summaries(JobAdmin(found.files, None, 5), Leases(found))  # later users cannot read what is not imported yet
        yield found


def test_anothers_job_is_listed_as_not_yours(stores: Stores) -> None:
    with as_user(BOB):
        alices, bobs = summaries(JobAdmin(stores.files, None, 5), Leases(stores))
    assert (alices.lease, bobs.lease) == (NOT_YOURS, "released")
    assert list(remarks(alices)) == ["it is another user's, who lets nobody else read it: ask as that user"]


def test_an_order_to_stay_away_is_read_by_all_users_of_the_root(stores: Stores, root: Path) -> None:
    """R67 of the reports: the administrator drains a host, and a sidecar of Bob's led on there."""
    order = Bar("h", int(wall()) + 3600, "root", "new disks")
    HostDrain(JobAdmin(stores.files, None, 5), for_all_users(stores), order, wall()).run(5.0, 1)
    with as_user(BOB):
        assert barring.bar_if_drained(LocalFiles(root, durable=False), "bobs", "h", wall()) == order
        assert barring.drained(LocalFiles(root, durable=False)) == {"h": order}
        with pytest.raises(PermissionDenied):
            barring.undrain(LocalFiles(root, durable=False), "h")


def test_a_root_that_a_drain_makes_is_as_private_as_any(tmp_path: Path) -> None:
    with closing(Stores(Settings.of(files=(tmp_path / "new").as_uri()))) as found:
        order = Bar("h", int(wall()) + 3600, "root", "")
        HostDrain(JobAdmin(found.files, None, 5), for_all_users(found), order, wall()).run(5.0, 1)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == PRIVATE
