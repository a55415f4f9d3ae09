"""Cost of a lookup when HDFS says the same as before, in Python calls: times are not repeatable.

A program that has lost ZooKeeper asks HDFS over and over, and nearly always hears the same. One name that was parsed
anew at each lookup once made lookups in HDFS a quarter slower.
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import leader
from leader.layout.contact import ContactAddress, ContactEntry
from leader.lookup.reader import Reader
from tests.unit.leader.faulty import Place
from tests.unit.leader.grants import FIRST, QUICK, Grants

CALLS = 70
"""Python calls of one lookup on the caller's thread, at most. With the name that was parsed anew there were 104."""

LOOKUPS = 10

PACKAGES = str(Path(leader.__file__).parent.parent)


def calls_of(reader: Reader) -> Counter[str]:
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            counted[f"{frame.f_code.co_filename.removeprefix(PACKAGES)}:{frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for _ in range(LOOKUPS):
            reader.leader("orders", 30)
    finally:
        sys.setprofile(before)
    return counted


def test_a_lookup_that_hears_nothing_new_parses_nothing_and_makes_few_calls(place: Place, grants: Grants) -> None:
    grants.lead(FIRST, "a:1")
    directory = grants.directory
    contact = ContactEntry(directory.epoch, directory.session_id, ContactAddress("127.0.0.1", 7, "0" * 32))
    place.direct.make_directory(f"{grants.record}/{contact.name}")
    reader = Reader(place.files, None, QUICK)
    reader.leader("orders", 30)
    counted = calls_of(reader)
    assert not [name for name in counted if name.endswith(":parse")], "nothing is parsed twice"
    assert sum(counted.values()) <= CALLS * LOOKUPS, counted.most_common()
