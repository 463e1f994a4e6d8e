import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.settings import KafkaSettings, load_settings
from topics.admin import ensure_topics, pipeline_topics
from topics.state import TopicSpec
from workbench.assist.doctor.checks import examine
from workbench.assist.findings import Finding

pytestmark = pytest.mark.pipeline


def config(folder: Path, name: str, servers: str, more: str = "") -> Path:
    file = folder / "evenflow.toml"
    file.write_text(f'[query]\nname = "{name}"\n[kafka]\nbootstrap_servers = "{servers}"\n{more}')
    return file


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_machine_that_is_ready_has_no_problem(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = load_settings(config(tmp_path, query_name, kafka_settings.bootstrap_servers))
    before = by_name(examine(settings).findings)
    assert before["input topic"].status == "problem"
    assert before["committed offsets"].what == "are kept for 7 d after the last partitioner has stopped"
    assert "`evenflow replay`" in before["input topic"].do
    assert before[f"topic {query_name}.routed"].status == "ok"
    ensure_topics(kafka_settings, pipeline_topics(settings.with_input_partitions(4)).values())
    findings = examine(settings).findings
    assert [finding for finding in findings if finding.status == "problem"] == []
    assert by_name(findings)["rights"].status == "ok"


def test_a_missing_broker_is_a_problem_and_exit_1(tmp_path: Path, query_name: str) -> None:
    file = config(tmp_path, query_name, "127.0.0.1:1", "request_timeout = 500\n")
    result = CliRunner().invoke(app, ["--config", str(file), "doctor", "--json"])
    assert result.exit_code == 1
    outcome = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert outcome["broker"]["status"] == "problem"
    assert "evenflow broker" in outcome["broker"]["do"]
    assert "doctor" not in outcome["broker"]["do"]
    assert outcome["java"]["status"] == "ok"


def test_a_retention_that_deletes_replays_is_a_problem(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    ensure_topics(kafka_settings, [TopicSpec(f"{query_name}.input", 4, {"max.message.bytes": "4194304"})])
    file = config(tmp_path, query_name, kafka_settings.bootstrap_servers)
    finding = by_name(examine(load_settings(file)).findings)[f"topic {query_name}.input"]
    assert finding.status == "problem"
    assert "retention.ms=-1" in finding.do
    table = CliRunner().invoke(app, ["--config", str(file), "doctor"])
    assert table.exit_code == 1
    assert "problem" in table.stdout
