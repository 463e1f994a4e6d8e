"""Rules and dashboards: committed as the code makes them, and nothing in them names a metric that does not
exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitoring.grafana.__main__ import FOLDER, dashboard_texts, main
from monitoring.instruments.__main__ import page
from monitoring.instruments.catalogue import METRICS

ROOT = Path(__file__).parents[3]
RULES = sorted((ROOT / "monitoring/prometheus").glob("*.rules.yml"))
FROM_ELSEWHERE = {"up", "ALERTS", "process_start_time_seconds", "process_resident_memory_bytes"}
"""Metrics of Prometheus and of its Python client."""
_STRING = re.compile(r'"[^"]*"')
_GROUPED = re.compile(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)")
_SELECTOR = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\w+")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\(|[a-zA-Z0-9_:])")
_WORDS = {"and", "or", "unless", "bool"}


def rules(kind: str) -> Iterator[dict[str, Any]]:
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            yield from (rule for rule in group["rules"] if kind in rule)


def dashboards() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(FOLDER.glob("*.json")):
        yield file.stem, json.loads(file.read_text())


def panels() -> list[Any]:
    return [
        pytest.param(panel, id=f"{name}-{panel['title']}")
        for name, board in dashboards()
        for panel in board["panels"]
        if panel["type"] != "row"
    ]


def metrics_in(expression: str) -> set[str]:
    """Names of metrics in some PromQL."""
    plain = _SELECTOR.sub(" ", _GROUPED.sub(" ", _STRING.sub(" ", expression)))
    return {name for name in _NAME.findall(plain) if name not in _WORDS and not name.isdigit()}


KNOWN = (
    {series for metric in METRICS.values() for series in metric.series}
    | {str(rule["record"]) for rule in rules("record")}
    | FROM_ELSEWHERE
)


def test_metrics_are_found_in_an_expression() -> None:
    text = (
        'max by (query, le) (rate(a_total{b="c"}[5m:1s])) > on (query) group_left (x) q:d:rate1m or vector(0)'
        " and e"
    )
    text += " offset 5m"
    assert metrics_in(text) == {"a_total", "q:d:rate1m", "e"}


@pytest.mark.parametrize(
    "rule", [*rules("record"), *rules("alert")], ids=lambda rule: rule.get("record") or rule["alert"]
)
def test_no_rule_names_a_metric_that_does_not_exist(rule: dict[str, Any]) -> None:
    assert metrics_in(rule["expr"]) <= KNOWN


@pytest.mark.parametrize("panel", panels())
def test_no_panel_names_a_metric_that_does_not_exist_and_each_says_what_it_is(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith((".", "?"))
    assert panel["targets"]
    for target in panel["targets"]:
        assert metrics_in(target["expr"]) <= KNOWN
        assert "$query" in target["expr"] or "evenflow" in target["expr"].partition("job")[2]
    if panel["type"] != "heatmap":
        assert panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.parametrize(
    ("name", "board"), [*dashboards()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_dashboard_marks_plans_and_decisions_with_their_causes(
    name: str, board: dict[str, Any]
) -> None:
    marks = {mark["name"]: mark for mark in board["annotations"]["list"]}
    assert set(marks) == {"plans", "decisions"}
    assert all(metrics_in(mark["expr"]) <= KNOWN for mark in marks.values())
    assert "{{cause}}" in marks["decisions"]["titleFormat"]


def test_every_metric_is_looked_at_somewhere() -> None:
    used = {
        name
        for panel in panels()
        for target in panel.values[0]["targets"]
        for name in metrics_in(target["expr"])
    }
    for rule in [*rules("record"), *rules("alert")]:
        used |= metrics_in(rule["expr"])
    unseen = {name for name, metric in METRICS.items() if not used & set(metric.series)}
    assert unseen <= {
        "evenflow_block_tuples",
        "evenflow_buckets",
        "evenflow_build_info",
        "evenflow_busy_seconds",
        "evenflow_combine_tasks",
        "evenflow_commit_interval_seconds",
        "evenflow_decision_timestamp_seconds",
        "evenflow_linger_seconds",
        "evenflow_max_frames_per_batch",
        "evenflow_reading_from_queues",
        "evenflow_routed_partitions",
        "evenflow_telemetry_records",
    }


def test_the_committed_dashboards_are_those_that_the_code_makes() -> None:
    assert {file.name: text for file, text in dashboard_texts().items()} == {
        file.name: file.read_text() for file in FOLDER.glob("*.json")
    }
    assert main(check=True) == 0


@pytest.mark.parametrize(
    ("name", "board"), [*dashboards()], ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_dashboard_has_its_variables_links_and_a_name_of_its_own(name: str, board: dict[str, Any]) -> None:
    assert board["uid"].startswith("evenflow-")
    assert [variable["name"] for variable in board["templating"]["list"]] == ["source", "query", "instance"]
    assert board["links"][0]["tags"] == ["evenflow"]
    assert "evenflow" in board["tags"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        assert 0 <= panel["gridPos"]["x"] <= panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


def test_each_alert_has_a_runbook_and_a_test() -> None:
    pages = (ROOT / "docs/operations/alerts.md").read_text()
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in pages.splitlines()
        if line.startswith("#")
    }
    tests = (ROOT / "monitoring/prometheus/rules.test.yml").read_text()
    for rule in rules("alert"):
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/operations/alerts.md"
        assert anchor in anchors
        assert f"alertname: {rule['alert']}\n" in tests
        assert rule["labels"]["severity"] in ("page", "ticket", "info")


def test_the_page_of_metrics_is_the_one_that_the_catalogue_makes() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == page(), "make docs"
