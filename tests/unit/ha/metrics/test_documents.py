"""The page, the alert rules and the dashboard use all metrics, and no others; and metrics follow the conventions."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ha.config.sources import load
from tests.unit.ha.led import Led
from tests.unit.ha.metrics.complete import complete
from tests.unit.ha.metrics.exposition import Exposition, faults, labels_of, shown_name
from tests.unit.ha.metrics.promql import grouped, selected

ROOT = Path(__file__).resolve().parents[4]
RULES = ROOT / "docker" / "prometheus"
ALERTS = (RULES / "alerts.yml").read_text()
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docker" / "grafana" / "dashboards" / "hybrid-ha.json").read_text())
PROMTOOL = shutil.which("promtool") or ""
TARGET = {"job", "instance"}
"""Labels that Prometheus gives every target."""


@pytest.fixture(scope="module")
def registry(quick_module: Path) -> Iterator[CollectorRegistry]:
    Led(quick_module).claim("orders", "a:1")
    with complete(load({"zookeeper": "127.0.0.1:1"}), "orders") as made:
        yield made


@pytest.fixture(scope="module")
def shown(registry: CollectorRegistry) -> Exposition:
    return Exposition(registry)


def table(page: str, first: str) -> list[list[str]]:
    """The cells of each row of a page's tables whose first cell is a name that begins like that."""
    rows = [line.strip().strip("|").split(" | ") for line in page.splitlines() if line.startswith(f"| `{first}")]
    return [[cell.strip() for cell in row] for row in rows]


def named(text: str) -> set[str]:
    """The words of a cell that are code."""
    return set(re.findall(r"`(\w+)`", text))


def test_the_page_has_every_metric_and_no_other(shown: Exposition) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = {row[0].strip("`"): row for row in table(page, "ha_")}
    assert rows.keys() == shown.names
    for family in shown.families:
        name, labels, meaning, do = rows[shown_name(family)]
        own, _, without = labels.partition("without")
        assert own.partition(",")[0] == family.type, family.name
        section = next(each for each in page.split("\n## ") if f"| {name} |" in each)
        common = re.search(r"^Labels of each: (.+)\.$", section, re.MULTILINE)
        told = named(own) | (named(common[1]) if common else set()) - named(without)
        assert told == labels_of(family), family.name
        assert meaning == family.documentation, family.name
        assert do, family.name


def alerts() -> dict[str, str]:
    """Each alert's expression; all of them are on one line."""
    return dict(re.findall(r"- alert: (\w+)\n +expr: (.+)\n", ALERTS))


def panels() -> list[Mapping[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> dict[str, str]:
    found = {f"alert {name}": expression for name, expression in alerts().items()}
    for panel in panels():
        for target in panel["targets"]:
            found[f"panel {panel['title']} {target['refId']}"] = target["expr"]
    return found


def faults_of(expression: str, known: Mapping[str, set[str]]) -> Iterator[str]:
    used: set[str] = set()
    for name, labels in selected(expression):
        if name not in known:
            yield f"there is no metric {name}"
            continue
        used |= known[name]
        for label in labels - known[name] - TARGET:
            yield f"{name} has no label {label}"
    for label in grouped(expression) - used - TARGET:
        yield f"nothing here has the label {label}"


@pytest.mark.parametrize("where", expressions())
def test_an_expression_uses_only_what_is_exposed(where: str, shown: Exposition) -> None:
    expression = expressions()[where]
    assert not list(faults_of(expression, shown.labels()))
    assert list(selected(expression)) or re.search(r"\b(up|process_\w+)\{", expression)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("max(ha_leader) == 0", "no metric ha_leader"),
        ('ha_lookups_total{why="x"}', "no label why"),
        ("sum by (reason) (ha_is_leader)", "nothing here has the label reason"),
        ("ha_is_leader > on (host) group_left () ha_epoch", "nothing here has the label host"),
        ("rate(ha_store_call_seconds[5m])", "no metric ha_store_call_seconds"),
        ('ha_takeover_seconds_bucket{le="1.0", store=~"a,b"}', "no label store"),
    ],
)
def test_the_check_of_expressions_finds(expression: str, fault: str, shown: Exposition) -> None:
    assert any(fault in each for each in faults_of(expression, shown.labels()))


def test_the_limits_in_expressions_are_buckets(shown: Exposition) -> None:
    limits = {
        (sample.name, sample.labels["le"])
        for family in shown.families
        for sample in family.samples
        if "le" in sample.labels
    }
    used = {
        (name, limit)
        for expression in expressions().values()
        for name, limit in re.findall(r'(ha_\w+_bucket)\{[^}]*le="([^"]+)"', expression)
    }
    assert used
    assert used <= limits


def test_every_alert_has_its_entry_in_the_runbook_and_its_test() -> None:
    assert len(alerts()) >= 10
    assert ALERTS.count("- alert:") == len(alerts()), "every expression is on one line"
    rows = table((ROOT / "docs" / "operations" / "alerts.md").read_text(), "Ha")
    assert [row[0].strip("`") for row in rows] == list(alerts())
    assert all(len(row) == 4 and all(row) for row in rows), "what it means, what to look at, what to do"
    tested = (RULES / "alerts_test.yml").read_text()
    for name in alerts():
        assert re.search(rf"alertname: {name}\n +eval_time: \S+\n +exp_alerts:", tested), name


@pytest.mark.slow  # virtual days of alerts
@pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize(
    "arguments", [("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")], ids=["check", "test"]
)
def test_promtool_takes_the_rules(arguments: tuple[str, ...]) -> None:
    ended = subprocess.run([PROMTOOL, *arguments], cwd=RULES, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow  # virtual days of alerts
@pytest.mark.skipif(not PROMTOOL, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_parses_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        f"      - record: panel:{number}\n        expr: {json.dumps(expression.replace('$job_name', '.*'))}\n"
        for number, expression in enumerate(expressions().values())
    ]
    (tmp_path / "rules.yml").write_text("groups:\n  - name: panels\n    rules:\n" + "".join(rules))
    command = [PROMTOOL, "check", "rules", "--lint=none", str(tmp_path / "rules.yml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_dashboard_shows_every_metric(shown: Exposition) -> None:
    used = {name for expression in expressions().values() for name, _ in selected(expression)}
    for family in shown.families:
        assert used & {sample.name for sample in family.samples}, family.name


def test_the_dashboard_is_one() -> None:
    assert DASHBOARD["uid"] == "hybrid-ha"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "job_name"}
    assert list(selected(variables["job_name"]["query"])) == [("ha_epoch", set())]
    for panel in panels():
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        position = panel["gridPos"]
        assert position["x"] + position["w"] <= 24, "it fits the grid"
    used = {name for expression in expressions().values() for name in re.findall(r"\$(\w+)", expression)}
    assert used <= variables.keys()


def test_grafana_provisions_the_files_that_exist() -> None:
    grafana = ROOT / "docker" / "grafana" / "provisioning"
    compose = (ROOT / "docker" / "compose.monitoring.yaml").read_text()
    folder = re.search(r"path: (\S+) \}", (grafana / "dashboards" / "hybrid-ha.yml").read_text())
    assert folder is not None
    assert f"./grafana/dashboards:{folder[1]}:ro" in compose
    assert f"{folder[1]}/hybrid-ha.json" in compose
    assert "./grafana/provisioning:/etc/grafana/provisioning:ro" in compose
    source = (grafana / "datasources" / "prometheus.yml").read_text()
    assert "type: prometheus" in source
    scraped = re.findall(r'"(\S+):8480"', (RULES / "prometheus.yml").read_text())
    everything = compose + (ROOT / "docker" / "compose.yaml").read_text()
    assert scraped
    assert all(f"hostname: {name}\n" in everything for name in scraped)


def test_every_metric_follows_the_conventions(shown: Exposition) -> None:
    assert len(shown.families) >= 20
    assert not list(faults(shown.families))


def test_every_metric_has_a_sample_here(shown: Exposition) -> None:
    """Otherwise its labels would not have been checked."""
    assert not [family.name for family in shown.families if not family.samples]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_own_lint_finds_nothing(registry: CollectorRegistry) -> None:
    command = ["promtool", "check", "metrics"]
    ended = subprocess.run(command, input=generate_latest(registry), capture_output=True, check=False, timeout=120)
    ours = [line for line in (ended.stdout + ended.stderr).decode().splitlines() if line.startswith("ha_")]
    assert not ours


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (lambda registry: Gauge("ha_repairs_total", "Repairs.", registry=registry), "suffix of something else"),
        (lambda registry: Gauge("ha_wait_ms", "Waiting.", registry=registry), "no base unit"),
        (lambda registry: Gauge("ha_wait", "Seconds that it waits.", registry=registry), "time without its unit"),
        (lambda registry: Histogram("ha_wait", "Waiting.", registry=registry), "has no unit"),
        (lambda registry: Counter("ha_repairs", "", registry=registry), "does not say"),
        (lambda registry: Counter("ha_Repairs", "Repairs.", registry=registry), "no snake case"),
        (lambda registry: Counter("ha_x", "Repairs.", ["job"], registry=registry).labels("a"), "label job, which Prom"),
        (lambda registry: Counter("ha_x", "Repairs.", ["Why"], registry=registry).labels("a"), "label Why, which"),
        (lambda registry: Counter("ha_x", "Repairs.", ["why"], registry=registry).labels(""), "empty label"),
    ],
)
def test_the_lint_finds(made: Callable[[CollectorRegistry], object], fault: str) -> None:
    registry = CollectorRegistry()
    made(registry)
    found = list(faults(Exposition(registry).families))
    assert any(fault.replace("no base unit", "not in a base unit") in each for each in found), found
