"""What the commands say of views, from facts and reports alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from evenflow.reporting import silent_after
from evenflow.settings import load_settings
from evenflow.settings.views import view
from spark_consumers.layout import Layout
from tests.unit.workbench.assist.status.test_status import SPARK, ended, facts, partition
from workbench.assist.doctor.topics import used_topics
from workbench.assist.status.facts import StageFacts, ViewFacts, windows_of
from workbench.assist.status.judging import wrong
from workbench.assist.status.screen import as_json, lines
from workbench.verify.report import Difference, Reach, Report
from workbench.verify.views import Reports

SETTINGS = load_settings(
    query={
        "name": "w",
        "window": "4s",
        "slide": "1s",
        "views": {"hourly": {"aggregates": {"n": "count"}, "window": "8s", "slide": "2s"}},
    }
).with_input_partitions(2)
HOURLY = view(SETTINGS, "hourly")
GOOD = Report(
    windows=3, rows=9, open_windows=0, pending_windows=0, ended=True, mark=None, read=9, routed=9, rejected=0,
    differences=0,
    kinds={}, first=(), counters=(), reach=Reach(written=1, due=1, windows=0, behind=0, seconds=0.0,
    bound=60.0),
)  # fmt: skip
BAD = replace(
    GOOD, differences=2, kinds={"missing": 2}, first=(Difference(kind="missing", detail="not there"),)
)


def test_a_query_without_views_is_reported_as_ever() -> None:
    alone = Reports({"w": BAD})
    assert (alone.text(), json.dumps(alone.as_json()), alone.exact) == (BAD.text(), BAD.json(), False)


def test_an_exact_view_is_a_line_and_the_last_line_has_all_differences() -> None:
    result = Reports({"w": GOOD, "w.hourly": GOOD})
    *_, one, total = result.text().splitlines()
    assert one == "view w.hourly: 3 windows, 9 rows compared, 0 differences"
    assert total == "0 differences in the query and 1 view"
    assert (result.exact, result.ended) == (True, True)


def test_the_differences_of_a_view_are_those_of_the_command() -> None:
    result = Reports({"w": GOOD, "w.a": GOOD, "w.hourly": BAD})
    assert (result.exact, result.differences) == (False, 2)
    assert "missing: not there" in result.text()
    assert result.text().endswith("2 differences in the query and 2 views")
    said = result.as_json()
    assert (said["differences"], said["exact"]) == (2, False)
    assert [(one["query"], one["differences"]) for one in said["queries"]] == [
        ("w", 0), ("w.a", 0), ("w.hourly", 2),
    ]  # fmt: skip


def test_status_says_of_each_view_how_far_its_windows_are() -> None:
    both = (partition(0, ended(20_000)), partition(1, ended(20_000)))
    seen = ViewFacts(
        name="hourly",
        windows=windows_of(HOURLY.query, both, (12_000, 0)),
        stages=(StageFacts(stage="fused", batches=3, last_at=None),),
    )
    result = facts(*both, written=(24_000, 0), views=(seen,))
    said = list(lines(result))
    assert any(line.startswith("view hourly: closed up to 1970-01-01 00:00:28") for line in said), said
    assert "checkpoint of view hourly: fused, 3 micro-batches done" in said
    assert as_json(result)["views"]["hourly"]["due"] == 28_000
    assert wrong(result) == []
    silent = replace(result, parts=(replace(SPARK, at=result.now - round(1_000 * silent_after())),))
    assert any("nothing aggregates" in one for one in wrong(silent)), "windows of the view are missing"


def test_the_doctor_looks_at_the_topics_of_views(tmp_path: Path) -> None:
    own = {role: spec.name for role, spec in used_topics(HOURLY).items() if spec.name.startswith("w.hourly.")}
    assert own == {"results": "w.hourly.results", "telemetry": "w.hourly.telemetry"}


def test_what_travels_to_the_python_workers_is_the_view() -> None:
    layout = Layout.from_settings(HOURLY, "t")
    assert (layout.fingerprint, layout.in_frames) == (HOURLY.fingerprint, SETTINGS.fingerprint)
    assert (layout.plan.window, layout.plan.slide, layout.plan.slides_per_pane) == (8_000, 2_000, 2)
    whole = Layout.from_settings(SETTINGS, "t")
    assert (whole.in_frames, whole.plan.slides_per_pane) == (SETTINGS.fingerprint, 1)
