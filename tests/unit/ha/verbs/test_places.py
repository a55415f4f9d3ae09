"""Places of savepoints that operators name."""

import pytest

from ha.verbs.places import check_where
from leader.errors import InvalidName

BASE = "hdfs://nameservice1/kept"


@pytest.mark.parametrize("bad", [f"{BASE}/_x", f"{BASE}/../x", "hdfs://", "s3://b/x", f"{BASE}/{'x' * 5000}", "a/b"])
def test_a_place_is_a_uri_or_a_name(bad: str) -> None:
    assert [check_where(each) for each in (f"{BASE}/x/", "x")] == [f"{BASE}/x/", "x"]
    for where, uri in ((bad, False), (bad, True), ("x", True)):
        with pytest.raises(InvalidName):
            check_where(where, uri=uri)
