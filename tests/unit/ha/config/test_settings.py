"""Settings: their sources, and one sentence for each mistake."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ha.config.restart_strategy import ExponentialDelay, FixedDelay, NoRestart
from ha.config.settings import Settings, reference
from ha.config.sources import gather, load
from leader.errors import InvalidName, InvalidSettings
from leader.layout.names import check_word

MOST = 60
"""Settings that a person can hold; whatever is added removes one."""


def test_the_defaults_need_nothing(nowhere: Path) -> None:
    settings = load({}, {"HOME": str(nowhere), "XDG_STATE_HOME": str(nowhere / "state")})
    assert settings.stores.files == (nowhere / "state" / "hybrid-ha" / "jobs").as_uri()
    assert settings.stores.zookeeper == ""
    assert check_word(settings.leadership.contender, "a contender") == settings.leadership.contender
    changed = settings.replace(files="", contender="")
    assert changed == Settings()
    assert settings.leadership.timing.short_ttl == 6


def test_arguments_then_environment_then_file_then_defaults(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7\nlong_ttl = 70\naudit = 7\nzookeeper = 'file:1'\n")
    environment = {"HA_LONG_TTL": "80", "HA_AUDIT": "8"}
    settings = load({"audit": 9, "short_ttl": None}, environment)
    assert (settings.leadership.short_ttl, settings.leadership.long_ttl, settings.leadership.audit) == (7, 80, 9)
    assert (settings.stores.zookeeper, settings.leadership.session_timeout) == ("file:1", 10)


def test_an_empty_variable_is_not_set(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7")
    assert load({}, {"HA_SHORT_TTL": "", "HA_CONFIG": ""}).leadership.short_ttl == 7


def test_another_file(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7")
    other = nowhere / "other.toml"
    other.write_text("short_ttl = 8")
    assert load({}, {"HA_CONFIG": str(other)}).leadership.short_ttl == 8


def test_what_the_sidecar_tells_its_command_is_not_taken_for_settings() -> None:
    told = {"HA_JOB": "orders", "HA_EPOCH": "3", "HA_SESSION_ID": "x", "HA_BELIEF": "/x", "HA_LEADER_DIRECTORY": "y"}
    assert load({}, told).leadership.short_ttl == 6


@pytest.mark.parametrize("kind", ["argument", "environment", "file"])
@pytest.mark.parametrize(
    ("name", "value"), [("short_ttl", 4.5), ("zookeeper", "zk:2181/ha"), ("contender", "a-1"), ("history", "h")]
)
def test_every_source_takes_every_kind(nowhere: Path, kind: str, name: str, value: object) -> None:
    if kind == "file":
        (nowhere / "ha.toml").write_text(f"{name} = {value!r}")
    settings = load({name: value} if kind == "argument" else {}, {f"HA_{name.upper()}": str(value)})
    assert settings.flat()[name] == value


def test_restarts_of_every_source(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("restart_strategy = 'fixed-delay'\nrestart_delay = '9 s'")
    settings = load({}, {"HA_RESTART_ATTEMPTS": "2"})
    strategy = settings.command.restarts(float)
    assert [strategy.failed(at) for at in (1.0, 2.0, 3.0)] == [9, 9, None]


@pytest.mark.parametrize(
    ("kind", "delay"), [("", None), ("none", None), ("fixed-delay", 3), ("exponential-delay", 3.3)]
)
def test_every_kind_of_restart(kind: str, delay: float | None) -> None:
    options = {"HA_RESTART_STRATEGY": kind, "HA_RESTART_DELAY": "3"}
    assert load({}, options).command.restarts(lambda: 1.0).failed(5.0) == pytest.approx(delay)


def wrong(*parts: str, file: str = "", environment: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """What is given, and parts of the sentence about it."""
    return pytest.param(arguments, environment or {}, file, parts, id=parts[0])


MISTAKES = [
    wrong("'shrt_ttl' in the arguments is not a setting", "did you mean 'short_ttl'?", shrt_ttl=1),
    wrong("'x' in the arguments is not a setting", "the settings are files, directory_mode", x=1),
    wrong("'zokeeper' in ha.toml is not a setting", "did you mean 'zookeeper'?", file="zokeeper = 'zk:1'"),
    wrong("files in ha.toml is", "it must be text", file="[files]\nuri = 'x'"),
    wrong("short_ttl in the arguments is 'soon'", "it must be a number of seconds, or", short_ttl="soon"),
    wrong(
        "short_ttl in the environment is '6 sheep'", "such as '10 s', '1 min'", environment={"HA_SHORT_TTL": "6 sheep"}
    ),
    wrong(
        "replicate_rate in the environment is '1 s'",
        "it must be a whole number.",
        environment={"HA_REPLICATE_RATE": "1 s"},
    ),
    wrong("audit in ha.toml is [1]", "it must be a number", file="audit = [1]"),
    wrong("failed_region is 'go'", "it must be 'end' or 'stay'", failed_region="go"),
    wrong("suspicion in the arguments is 'of'", "it must be true or false", suspicion="of"),
    wrong("directory_mode is 'rwx'", "it must be 0700 to 0777", directory_mode="rwx"),
    wrong("directory_mode is '0500'", "as chmod takes it", directory_mode="0500"),
    wrong("directory_mode is '1777'", "as chmod takes it", directory_mode="1777"),
    wrong("kerberos_keytab and kerberos_principal need each other", "set both", kerberos_keytab="/x"),
    wrong("kerberos_keytab and kerberos_principal need each other", "or neither", kerberos_principal="x"),
    wrong("zookeeper_auth is 'basic'", "'digest', 'sasl-digest' or 'kerberos'", zookeeper_auth="basic"),
    wrong("zookeeper_auth is 'digest' without a password", "zookeeper_credentials", zookeeper_auth="digest"),
    wrong("zookeeper_credentials clashes with zookeeper_auth 'none'", zookeeper_credentials="/x"),
    wrong("zookeeper_tls_certificate and", "need zookeeper_tls_ca", zookeeper_tls_certificate="/x"),
    wrong("zookeeper_tls_key needs zookeeper_tls_certificate", zookeeper_tls_ca="/x", zookeeper_tls_key="/x"),
    wrong("zookeeper_acl is 'closed'", "'open', 'creator', or 'creator,scheme:id'", zookeeper_acl="closed"),
    wrong("zookeeper_acl is 'creator' and ZooKeeper is not told", "zookeeper_auth", zookeeper_acl="creator"),
    wrong("zookeeper_acl is 'open,world:anyone'", zookeeper_acl="open,world:anyone"),
    wrong(
        "zookeeper_acl has 'reports'",
        "scheme:id",
        zookeeper_auth="digest",
        zookeeper_credentials="/x",
        zookeeper_acl="creator,reports",
    ),
    wrong("http_hosts has 'b/c'", "must be a host's name", http_hosts="a.example.com, b/c"),
    wrong("http_hosts has '*example.com'", "must be a host's name", http_hosts="*example.com"),
    wrong("http_networks is '10.0.0.1/8'", "has host bits set", http_networks="10.0.0.1/8"),
    wrong("http_key and http_client_ca are of no use without http_certificate", http_key="/k"),
    wrong("http_key and http_client_ca are of no use without http_certificate", http_client_ca="/k"),
    wrong("jobmaster_key is of no use without jobmaster_certificate", jobmaster_key="/k"),
    wrong("standby is 'hot'", "it must be 'cold' or 'warm'", standby="hot"),
    wrong("rerun and cleanup clash", "Switch one of them off", rerun=True, cleanup=True),
    wrong("suspicion in ha.toml is 'off'", "it must be true or false", file="suspicion = 'off'"),
    wrong("files in ha.toml is 5", "it must be text", file="files = 5"),
    wrong("short_ttl in ha.toml is True", "it must be a number", file="short_ttl = true"),
    wrong("ha.toml is not valid TOML", "line 1", file="short_ttl 6"),
    wrong("ha.toml is not valid TOML: Cannot overwrite a value", file="short_ttl = 6\nshort_ttl = 7"),
    wrong("HA_CONFIG names no/where.toml", "no such file", environment={"HA_CONFIG": "no/where.toml"}),
    wrong(". cannot be read", "Is a directory", environment={"HA_CONFIG": "."}),
    wrong("short_ttl (1 s) and call_timeout (1 s) clash", "raise short_ttl", short_ttl=1, call_timeout=1),
    wrong("long_ttl (5 s) and short_ttl (6 s) clash", long_ttl=5),
    wrong("short_ttl is nan s", "it must be from", short_ttl=float("nan")),
    wrong("audit is 0 s: it must be at least 0.1", audit=0),
    wrong("stop_grace is -1 s: it must be at least 0", stop_grace=-1),
    wrong("snapshots is 'here'", "must be an absolute path, or 'off'", snapshots="here"),
    wrong("stop_grace is nan s", stop_grace=float("nan")),
    wrong("restart_strategy is 'fixed'", "or 'none' or 'fixed-delay'", restart_strategy="fixed"),
    wrong(
        "restart_attempts in the environment is '2.5'",
        "it must be a whole number",
        environment={"HA_RESTART_ATTEMPTS": "2.5"},
    ),
    wrong(
        "restart_delay in the environment is '10 x'", "it must be a number", environment={"HA_RESTART_DELAY": "10 x"}
    ),
    wrong("restart_attempts is -1: it must be from 0", restart_attempts=-1),
    wrong("contender", "'a b' is not a name of a contender: use 1 to 64", contender="a b"),
    wrong("'_any' is not a name of a contender", environment={"HA_CONTENDER": "_any"}),
]


@pytest.mark.parametrize(("arguments", "environment", "file", "parts"), MISTAKES)
def test_every_mistake_is_one_sentence_with_key_place_and_remedy(
    nowhere: Path, arguments: dict[str, Any], environment: dict[str, str], file: str, parts: tuple[str, ...]
) -> None:
    if file:
        (nowhere / "ha.toml").write_text(file)
    with pytest.raises((InvalidSettings, InvalidName)) as caught:
        load(arguments, environment)
    sentence = str(caught.value)
    for part in parts:
        assert part in sentence
    assert "\n" not in sentence
    assert re.search(r"[.?]$", sentence)


def test_a_strategy_that_is_not_chosen_depends_on_what_it_restarts() -> None:
    unset, chosen = Settings(), Settings.of(restart_strategy="fixed-delay")
    assert isinstance(unset.command.restarts(float), NoRestart)
    assert isinstance(unset.command.restarts(float, "exponential-delay"), ExponentialDelay)
    assert isinstance(chosen.command.restarts(float, "exponential-delay"), FixedDelay)


def test_how_many_checkpoints_are_retained(nowhere: Path) -> None:
    assert load({}, {}).command.checkpoints_retained == 10
    assert load({}, {"HA_CHECKPOINTS_RETAINED": "1"}).command.checkpoints_retained == 1
    for number in (0, -1, 1001):
        with pytest.raises(InvalidSettings, match=f"checkpoints_retained is {number}: it must be from 1 to 1,000"):
            load({"checkpoints_retained": number}, {})
    with pytest.raises(InvalidSettings, match="checkpoints_retained in the environment is 'ten'"):
        load({}, {"HA_CHECKPOINTS_RETAINED": "ten"})
    assert not list(nowhere.iterdir())


def test_a_file_that_is_no_text_or_cannot_be_read(nowhere: Path) -> None:
    file = nowhere / "ha.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match=r"ha\.toml is not UTF-8"):
        load({}, {})
    file.unlink()
    file.mkdir()
    with pytest.raises(InvalidSettings, match=r"ha\.toml cannot be read: Is a directory"):
        load({}, {})


@pytest.mark.parametrize("host", ["_", "-.-", "ä", "x" * 100, "a.b-c", ""])
def test_every_host_has_a_name_that_can_be_a_contenders(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    contender = load({}, {}).leadership.contender
    assert check_word(contender, "a contender") == contender


def test_two_processes_of_one_host_name_and_process_id_have_two_names() -> None:
    source = "import os; os.getpid = lambda: 1; from ha.config.sources import load; print(load().leadership.contender)"
    first, second = (subprocess.check_output([sys.executable, "-c", source], text=True, timeout=120) for _ in range(2))
    assert first != second
    assert load({}, {}).leadership.contender == load({}, {}).leadership.contender, "one a process"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        load({}, {}).leadership.short_ttl = 1.0  # type: ignore[misc]


def test_every_setting_is_documented() -> None:
    found = reference()
    assert [each.name for each in found] == list(Settings().flat()), "each name once"
    assert len(found) == len({each.name for each in found}) <= MOST
    for each in found:
        assert each.text.endswith(".")
        assert each.default
        assert each.kind in (str, float, int, bool)
        assert (each.kind is float) == (each.unit == "seconds")
    names = {each.name: (each.variable, each.default) for each in found}
    assert names["stop_grace"] == ("HA_STOP_GRACE", "10")
    assert names["rerun"] == ("HA_RERUN", "false")


GROUPS = """
files = "main"
[groups.main]
files = ["hdfs://ns1/ha", "hdfs://ns2/ha"]
[groups.other]
files = ["hdfs://ns3/ha", "hdfs://ns4/ha"]
placement = "least-rpc"
"""


def test_files_may_name_a_group(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text(GROUPS)
    assert load().stores.files == "hdfs://ns1/ha,hdfs://ns2/ha"
    assert load().stores.placement == "hash"
    found = gather({"files": "other"})
    stores = found.settings.stores
    assert (stores.files, stores.placement) == ("hdfs://ns3/ha,hdfs://ns4/ha", "least-rpc")
    assert found.sources["placement"] == "ha.toml"
    assert load({"files": "other", "placement": "hash"}).stores.placement == "hash"
    assert load({"files": "other"}, {"HA_PLACEMENT": "least-jobs"}).stores.placement == "least-jobs"
    assert load({"files": "file:///x"}).stores.files == "file:///x"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('files = "b"\n[groups.a]\nfiles = ["hdfs://x/y", "hdfs://z/y"]', "has no such group, but a."),
        ('[groups.a]\nfiles = ["hdfs://x/y"]', "must have a list `files` of at least two URIs"),
        ('[groups.a]\nfiles = ["hdfs://x/y", "z"]', "must have a list `files` of at least two URIs"),
        ('[groups.a]\nfiles = ["hdfs://x/y,hdfs://v/y", "hdfs://z/y"]', "must have a list `files`"),
        ('[groups.a]\nfiles = "hdfs://x/y"', "has another form"),
        ('[groups.a]\nfiles = ["hdfs://x/y", "hdfs://z/y"]\npolicy = "hash"', "has another form"),
        ('placement = "best"', "placement is 'best'"),
    ],
)
def test_a_wrong_group_is_one_sentence(nowhere: Path, text: str, sentence: str) -> None:
    (nowhere / "ha.toml").write_text(text)
    with pytest.raises(InvalidSettings) as caught:
        load()
    assert sentence in str(caught.value)
