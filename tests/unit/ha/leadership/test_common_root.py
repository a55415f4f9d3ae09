"""Where an output is: exactly the directory that was given, beside the jobs, or one sentence."""

import pytest

from ha.leadership.fenced_rename import common_root
from leader.errors import InvalidSettings

LEADER = "hdfs://names:8020/ha/orders/leader"


@pytest.mark.parametrize("name", ["50%41", "a b", "a,b", "[x]{1}&'^", "日🚀", "it\x92s"])
def test_nothing_of_a_name_is_lost(name: str) -> None:
    assert common_root(LEADER, f"hdfs://names:8020/out/{name}") == (
        "hdfs://names:8020/",
        "ha/orders/leader",
        f"out/{name}",
    )


@pytest.mark.parametrize("name", ["x#1", "y?z", "x#", "x ", "a\tb"])
def test_a_name_of_which_something_would_be_lost_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettings, match=r"output: .* (where a URI's path ends|has white space)"):
        common_root(LEADER, f"hdfs://names:8020/out/{name}")
