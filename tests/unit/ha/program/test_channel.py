"""A program in another language reads and writes the files as docs/program.md says."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ha.program import end_file, grant_file, heartbeat, request_file, settle_file
from ha.program.deadline_file import DeadlineWriter
from ha.program.end_file import End
from ha.program.heartbeat import Beat
from ha.program.request_file import Answer, Wanted
from ha.program.settle_file import Settle
from leader.job.request_folder import State
from leader.layout.names import LeaderDirectory
from store.clock import now
from tests.patience import PATIENCE_S

PERL = shutil.which("perl") or ""

pytestmark = pytest.mark.skipif(not PERL, reason="perl is not installed (Debian: perl-base)")

REPLACE = (
    'sub put { my ($f, $t) = @_; open(my $o, ">", "$f.staged"); print $o $t; close $o; rename("$f.staged", $f) }\n'
)


def perl(script: str, *arguments: Path) -> str:
    ended = subprocess.run(
        [PERL, "-e", REPLACE + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ended.stdout


DEADLINES = """
open(my $f, "<:raw", $ARGV[0]); read($f, my $all, 40);
my ($count, @numbers) = unpack("Q<d<4", $all);
printf("%.3f %.3f", @numbers[$count % 2 * 2, $count % 2 * 2 + 1]);
"""


def test_deadlines(tmp_path: Path) -> None:
    writer = DeadlineWriter(tmp_path / "belief")
    for ahead in (10.0, 20.0, 30.0):  # each in the other place
        leads, holds = now() + ahead, now() + ahead + 1.5
        writer.write(leads, holds)
        assert perl(DEADLINES, tmp_path / "belief") == f"{leads:.3f} {holds:.3f}"
    writer.close()


def test_a_grant_is_awaited_and_taken(tmp_path: Path) -> None:
    path, leader = tmp_path / "grant", LeaderDirectory(7, "0000000a-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
    perl('put("$ARGV[0].awaited", "12.5")', path)
    assert grant_file.awaited_since(path) == 12.5
    grant_file.grant(path, leader, "hdfs://ns/ha/orders/x")
    said = perl('open(my $f, "<", $ARGV[0]); print join("|", map { chomp; $_ } <$f>); put("$ARGV[0].taken", "")', path)
    assert said == f"{leader.name}|hdfs://ns/ha/orders/x"
    assert grant_file.taken(path)


def test_beats_and_the_end(tmp_path: Path) -> None:
    perl('put($ARGV[0], q({"count": 7, "python": 123, "jvm": 456}))', tmp_path / "heartbeat")
    assert heartbeat.newest(tmp_path / "heartbeat") == Beat(7, 123, 456)
    perl('put("$ARGV[0].end", q({"said": "not yet", "remedy": "", "inside": true}))', tmp_path / "queries")
    assert end_file.told(tmp_path / "queries") == End("not yet", "", inside=True)


def test_requests_are_answered(tmp_path: Path) -> None:
    path = tmp_path / "restart"
    perl('put("$ARGV[0].able", "")', path)
    assert request_file.able(path)
    request_file.ask(path, Wanted("one", "words"))
    perl(
        'open(my $f, "<", $ARGV[0]); my ($id) = <$f> =~ /"id":"([^"]*)"/;'
        'put("$ARGV[0].answer", qq({"id": "$id", "state": "done", "said": "Started again."}))',
        path,
    )
    assert request_file.answered(path, "one") == Answer("one", State.DONE, "Started again.")
    settle_file.ask(path, Settle(60.0, drain=True))
    assert perl('open(my $f, "<", $ARGV[0]); print <$f>', path) == '{"seconds":60.0,"drain":true}'
    perl('put("$ARGV[0].drained", "")', path)
    assert settle_file.drained(path)
