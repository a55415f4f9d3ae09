"""Settings: their sources, and one sentence for each mistake."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ha.config.restart_strategy import ExponentialDelay, FixedDelay, NoRestart
from ha.config.settings import Settings, reference
from ha.config.sources import gather, load
from leader.errors import InvalidName, InvalidSettings
from leader.layout.names import check_word


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without an ha.toml."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults_need_nothing(nowhere: Path) -> None:
    settings = load({}, {"HOME": str(nowhere), "XDG_STATE_HOME": str(nowhere / "state")})
    assert settings.files == (nowhere / "state" / "hybrid-ha" / "jobs").as_uri()
    assert settings.zookeeper == ""
    assert check_word(settings.contender, "a contender") == settings.contender
    defaults = Settings()
    for field in msgspec.structs.fields(Settings):
        if field.name not in ("files", "contender"):
            assert getattr(settings, field.name) == getattr(defaults, field.name)
    assert settings.timing.short_ttl == 6


def test_arguments_then_environment_then_file_then_defaults(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7\nlong_ttl = 70\naudit = 7\nzookeeper = 'file:1'\n")
    environment = {"HA_LONG_TTL": "80", "HA_AUDIT": "8"}
    settings = load({"audit": 9, "short_ttl": None}, environment)
    assert (settings.short_ttl, settings.long_ttl, settings.audit) == (7, 80, 9)
    assert (settings.zookeeper, settings.session_timeout) == ("file:1", 10)


def test_an_empty_variable_is_not_set(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7")
    assert load({}, {"HA_SHORT_TTL": "", "HA_CONFIG": ""}).short_ttl == 7


def test_another_file(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text("short_ttl = 7")
    other = nowhere / "other.toml"
    other.write_text("short_ttl = 8")
    assert load({}, {"HA_CONFIG": str(other)}).short_ttl == 8


def test_what_the_sidecar_tells_its_command_is_not_taken_for_settings() -> None:
    told = {"HA_JOB": "orders", "HA_EPOCH": "3", "HA_SESSION_ID": "x", "HA_BELIEF": "/x", "HA_LEADER_DIRECTORY": "y"}
    assert load({}, told).short_ttl == 6


@pytest.mark.parametrize("kind", ["argument", "environment", "file"])
@pytest.mark.parametrize(
    ("name", "value"), [("short_ttl", 4.5), ("zookeeper", "zk:2181/ha"), ("contender", "a-1"), ("history", "h")]
)
def test_every_source_takes_every_kind(nowhere: Path, kind: str, name: str, value: object) -> None:
    if kind == "file":
        (nowhere / "ha.toml").write_text(f"{name} = {value!r}")
    settings = load({name: value} if kind == "argument" else {}, {f"HA_{name.upper()}": str(value)})
    assert getattr(settings, name) == value


FLINKS = {
    "restart-strategy.type": "disable",
    "restart-strategy.fixed-delay.attempts": 4,
    "restart-strategy.fixed-delay.delay": 2.5,
    "restart-strategy.failure-rate.max-failures-per-interval": 3,
    "restart-strategy.failure-rate.failure-rate-interval": 300.0,
    "restart-strategy.failure-rate.delay": 10.0,
    "restart-strategy.exponential-delay.initial-backoff": 10.0,
    "restart-strategy.exponential-delay.max-backoff": 120.0,
    "restart-strategy.exponential-delay.backoff-multiplier": 1.4,
    "restart-strategy.exponential-delay.jitter-factor": 0.2,
    "restart-strategy.exponential-delay.reset-backoff-threshold": 600.0,
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": 10,
}
"""Flink's names, with values that are not the defaults."""


def test_restarts_are_set_by_flinks_names(nowhere: Path) -> None:
    fields = {name: re.sub(r"[-.]", "_", name) for name in FLINKS}
    assert set(fields.values()) == {each for each in Settings.__struct_fields__ if each.startswith("restart_")}
    arguments = load({fields[name]: value for name, value in FLINKS.items()}, {})
    environment = load({}, {f"HA_{fields[name].upper()}": str(value) for name, value in FLINKS.items()})
    (nowhere / "ha.toml").write_text("\n".join(f"{name} = {value!r}" for name, value in FLINKS.items()))
    file = load({}, {})
    for settings in (arguments, environment, file):
        assert {name: getattr(settings, field) for name, field in fields.items()} == FLINKS


def test_restarts_in_a_table_of_their_own(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_text(
        "[restart-strategy]\ntype = 'fixed-delay'\n[restart-strategy.fixed-delay]\ndelay = 9"
    )
    settings = load({}, {"HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS": "2"})
    strategy = settings.restart_strategy(float)
    assert [strategy.failed(at) for at in (1.0, 2.0, 3.0)] == [9, 9, None]


@pytest.mark.parametrize(
    ("kind", "delay"),
    [
        ("", None),
        ("none", None),
        ("off", None),
        ("disable", None),
        ("fixed-delay", 1),
        ("fixeddelay", 1),
        ("failure-rate", 2),
        ("FailureRate", 2),
        ("exponential-delay", 4.5),
        ("exponentialdelay", 4.5),
    ],
)
def test_every_kind_of_restart(kind: str, delay: float | None) -> None:
    options = {
        "HA_RESTART_STRATEGY_TYPE": kind,
        "HA_RESTART_STRATEGY_FAILURE_RATE_DELAY": "2",
        "HA_RESTART_STRATEGY_EXPONENTIAL_DELAY_INITIAL_BACKOFF": "3",
        "HA_RESTART_STRATEGY_EXPONENTIAL_DELAY_JITTER_FACTOR": "0.5",
    }
    assert load({}, options).restart_strategy(lambda: 1.0).failed(5.0) == delay


MISTAKES: list[tuple[dict[str, Any], dict[str, str], str, list[str]]] = [
    ({"shrt_ttl": 1}, {}, "", ["'shrt_ttl' in the arguments is not a setting", "did you mean 'short_ttl'?"]),
    ({"x": 1}, {}, "", ["'x' in the arguments is not a setting", "the settings are files, directory_mode"]),
    ({}, {}, "zokeeper = 'zk:1'", ["'zokeeper' in ha.toml is not a setting", "did you mean 'zookeeper'?"]),
    ({}, {}, "[files]\nuri = 'x'", ["files in ha.toml is", "it must be text"]),
    ({"short_ttl": "soon"}, {}, "", ["short_ttl in the arguments is 'soon'", "it must be a number of seconds, or"]),
    ({}, {"HA_SHORT_TTL": "6 sheep"}, "", ["short_ttl in the environment is '6 sheep'", "such as '10 s', '1 min'"]),
    ({}, {"HA_DRIFT": "1 s"}, "", ["drift in the environment is '1 s'", "it must be a number."]),
    ({}, {"HA_FILE": "x"}, "", ["HA_FILE in the environment is not a setting: did you mean HA_FILES?"]),
    ({}, {}, "audit = [1]", ["audit in ha.toml is [1]", "it must be a number"]),
    ({"failover_strategy": "all"}, {}, "", ["failover_strategy is 'all'", "it must be 'region' or 'full'"]),
    ({"failed_region": "go"}, {}, "", ["failed_region is 'go'", "it must be 'end' or 'stay'"]),
    ({"failed_query": "stay"}, {}, "", ["failed_query is 'stay'", "it must be 'report' or 'end'"]),
    ({"suspicion": "of"}, {}, "", ["suspicion is 'of'", "it must be 'on' or 'off'"]),
    ({"directory_mode": "rwx"}, {}, "", ["directory_mode is 'rwx'", "it must be 0700 to 0777"]),
    ({"directory_mode": "0500"}, {}, "", ["directory_mode is '0500'", "as chmod takes it"]),
    ({"directory_mode": "1777"}, {}, "", ["directory_mode is '1777'", "as chmod takes it"]),
    ({"kerberos_keytab": "/x"}, {}, "", ["kerberos_keytab and kerberos_principal need each other", "set both"]),
    ({"kerberos_principal": "x"}, {}, "", ["kerberos_keytab and kerberos_principal need each other", "or neither"]),
    ({"zookeeper_auth": "basic"}, {}, "", ["zookeeper_auth is 'basic'", "'digest', 'sasl-digest' or 'kerberos'"]),
    ({"zookeeper_auth": "digest"}, {}, "", ["zookeeper_auth is 'digest' without a password", "zookeeper_credentials"]),
    ({"zookeeper_credentials": "/x"}, {}, "", ["zookeeper_credentials clashes with zookeeper_auth 'none'"]),
    ({"zookeeper_tls_certificate": "/x"}, {}, "", ["zookeeper_tls_certificate and", "need zookeeper_tls_ca"]),
    (
        {"zookeeper_tls_ca": "/x", "zookeeper_tls_key": "/x"},
        {},
        "",
        ["zookeeper_tls_key needs zookeeper_tls_certificate"],
    ),
    ({"zookeeper_acl": "closed"}, {}, "", ["zookeeper_acl is 'closed'", "'open' or 'creator'"]),
    ({"zookeeper_acl": "creator"}, {}, "", ["zookeeper_acl is 'creator' and ZooKeeper is not told", "zookeeper_auth"]),
    ({"zookeeper_readers": "world:anyone"}, {}, "", ["zookeeper_readers names readers of nodes that are open"]),
    (
        {"zookeeper_auth": "digest", "zookeeper_credentials": "/x", "zookeeper_readers": "reports"},
        {},
        "",
        ["zookeeper_readers has 'reports'", "scheme:id"],
    ),
    ({"http_hosts": "a.example.com, b/c"}, {}, "", ["http_hosts has 'b/c'", "must be a host's name"]),
    ({"http_hosts": "*example.com"}, {}, "", ["http_hosts has '*example.com'", "must be a host's name"]),
    ({"http_networks": "10.0.0.1/8"}, {}, "", ["http_networks is '10.0.0.1/8'", "has host bits set"]),
    ({"http_key": "/k"}, {}, "", ["http_key and http_client_ca are of no use without http_certificate"]),
    ({"http_client_ca": "/k"}, {}, "", ["http_key and http_client_ca are of no use without http_certificate"]),
    ({"jobmaster_key": "/k"}, {}, "", ["jobmaster_key is of no use without jobmaster_certificate"]),
    ({"standby": "hot"}, {}, "", ["standby is 'hot'", "it must be 'cold' or 'warm'"]),
    ({"cleanup": "yes"}, {}, "", ["cleanup is 'yes'", "it must be 'on' or 'off'"]),
    ({"class_data": "yes"}, {}, "", ["class_data is 'yes'", "it must be 'on' or 'off'"]),
    ({"rerun": "daily"}, {}, "", ["rerun is 'daily'", "it must be 'on' or 'off'"]),
    ({"rerun": "on", "cleanup": "on"}, {}, "", ["rerun and cleanup clash", "Switch one of them off"]),
    ({}, {}, "suspicion = false", ["suspicion in ha.toml is False", "it must be text"]),
    ({}, {}, "files = 5", ["files in ha.toml is 5", "it must be text"]),
    ({}, {}, "short_ttl = true", ["short_ttl in ha.toml is True", "it must be a number"]),
    ({}, {}, "short_ttl 6", ["ha.toml is not valid TOML", "line 1"]),
    ({}, {}, "short_ttl = 6\nshort_ttl = 7", ["ha.toml is not valid TOML: Cannot overwrite a value"]),
    ({}, {"HA_CONFIG": "no/where.toml"}, "", ["HA_CONFIG names no/where.toml", "no such file"]),
    ({}, {"HA_CONFIG": "."}, "", [". cannot be read", "Is a directory"]),
    ({"short_ttl": 1, "call_timeout": 1}, {}, "", ["short_ttl (1 s) and call_timeout (1 s) clash", "raise short_ttl"]),
    ({"long_ttl": 5}, {}, "", ["long_ttl (5 s) and short_ttl (6 s) clash"]),
    ({"short_ttl": float("nan")}, {}, "", ["short_ttl is nan s", "it must be from"]),
    ({"audit": 0}, {}, "", ["audit is 0 s: it must be at least 0.1"]),
    ({"stop_grace": -1}, {}, "", ["stop_grace is -1 s: it must be at least 0"]),
    ({"snapshots": "here"}, {}, "", ["snapshots is 'here'", "must be an absolute path, or 'off'"]),
    ({}, {"HA_SNAPSHOT_FRESH": "4"}, "", ["snapshot_fresh (4 s) and audit (30 s) clash", "a tenth of audit (3 s)"]),
    ({"snapshot_fresh": -1}, {}, "", ["snapshot_fresh is -1 s: it must be at least 0"]),
    ({"stop_grace": float("nan")}, {}, "", ["stop_grace is nan s"]),
    ({"restart_strategy_type": "fixed"}, {}, "", ["restart-strategy.type is 'fixed'", "one of 'none', 'fixed-delay'"]),
    ({}, {}, "restart-strategy = 'none'", ["'restart-strategy' in ha.toml is not", "mean 'restart-strategy.type'?"]),
    ({}, {}, "[restart-strategy]\ntipe = 'none'", ["'restart-strategy.tipe' in ha.toml is not a setting"]),
    ({}, {}, "restart-strategy.type.x = 1", ["restart-strategy.type in ha.toml is {'x': 1}", "must be text"]),
    (
        {},
        {"HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS": "2.5"},
        "",
        ["restart-strategy.fixed-delay.attempts in the environment is '2.5'", "it must be a whole number"],
    ),
    (
        {},
        {"HA_RESTART_STRATEGY_FIXED_DELAY_DELAY": "10 x"},
        "",
        ["restart-strategy.fixed-delay.delay in the environment is '10 x'", "it must be a number"],
    ),
    (
        {"restart_strategy_failure_rate_max_failures_per_interval": 0},
        {},
        "",
        ["restart-strategy.failure-rate.max-failures-per-interval is 0: it must be from 1"],
    ),
    ({"contender": "a b"}, {}, "", ["contender", "'a b' is not a name of a contender: use 1 to 64"]),
    ({}, {"HA_CONTENDER": "_any"}, "", ["'_any' is not a name of a contender"]),
]


@pytest.mark.parametrize(("arguments", "environment", "file", "parts"), MISTAKES, ids=[each[3][0] for each in MISTAKES])
def test_every_mistake_is_one_sentence_with_key_place_and_remedy(
    nowhere: Path, arguments: dict[str, Any], environment: dict[str, str], file: str, parts: list[str]
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
    unset, chosen = Settings(), Settings(restart_strategy_type="fixed-delay")
    assert isinstance(unset.restart_strategy(float), NoRestart)
    assert isinstance(unset.restart_strategy(float, "exponential-delay"), ExponentialDelay)
    assert isinstance(chosen.restart_strategy(float, "exponential-delay"), FixedDelay)


def test_how_many_checkpoints_are_retained(nowhere: Path) -> None:
    assert load({}, {}).checkpoints_retained == 10
    assert load({}, {"HA_CHECKPOINTS_RETAINED": "1"}).checkpoints_retained == 1
    for number in (0, -1, 1001):
        with pytest.raises(InvalidSettings, match=f"checkpoints_retained is {number}: it must be from 1 to 1,000"):
            load({"checkpoints_retained": number}, {})
    with pytest.raises(InvalidSettings, match="checkpoints_retained in the environment is 'ten'"):
        load({}, {"HA_CHECKPOINTS_RETAINED": "ten"})
    assert not list(nowhere.iterdir())


def test_a_file_that_is_no_text(nowhere: Path) -> None:
    (nowhere / "ha.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match=r"ha\.toml is not valid TOML"):
        load({}, {})


def test_a_file_that_cannot_be_read(nowhere: Path) -> None:
    (nowhere / "ha.toml").mkdir()
    with pytest.raises(InvalidSettings, match=r"ha\.toml cannot be read: Is a directory"):
        load({}, {})


@pytest.mark.parametrize("host", ["_", "-.-", "ä", "x" * 100, "a.b-c", ""])
def test_every_host_has_a_name_that_can_be_a_contenders(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)
    contender = load({}, {}).contender
    assert check_word(contender, "a contender") == contender


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        load({}, {}).short_ttl = 1.0  # type: ignore[misc]


def test_every_setting_is_documented() -> None:
    found = reference()
    assert [each.name for each in found] == list(Settings.__struct_fields__)
    for each in found:
        assert each.text.endswith(".")
        assert each.default
        assert each.kind in (str, float, int)
        assert (each.kind is float) == (each.unit in ("seconds", "ratio"))
    names = {each.name: (each.key, each.variable, each.default) for each in found}
    assert names["stop_grace"] == ("stop_grace", "HA_STOP_GRACE", "10")
    assert names["restart_strategy_failure_rate_delay"] == (
        "restart-strategy.failure-rate.delay",
        "HA_RESTART_STRATEGY_FAILURE_RATE_DELAY",
        "1",
    )


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
    assert load().files == "hdfs://ns1/ha,hdfs://ns2/ha"
    assert load().placement == "hash"
    found = gather({"files": "other"})
    assert (found.settings.files, found.settings.placement) == ("hdfs://ns3/ha,hdfs://ns4/ha", "least-rpc")
    assert found.sources["placement"] == "ha.toml"
    assert load({"files": "other", "placement": "hash"}).placement == "hash"
    assert load({"files": "other"}, {"HA_PLACEMENT": "least-jobs"}).placement == "least-jobs"
    assert load({"files": "file:///x"}).files == "file:///x"


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
