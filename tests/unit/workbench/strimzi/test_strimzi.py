"""Manifests that are committed say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from evenflow.settings import Settings, load_settings
from monitoring.operator_rules import printed
from tests.unit.workbench.strimzi.matrix import IDS, MATRIX, groups
from topics.admin import pipeline_topics
from workbench.strimzi.manifests import manifests
from workbench.strimzi.rights import PARTS, Right, rights

OVERLAY = Path(__file__).parents[4] / "k8s/overlays/production"


@pytest.fixture
def settings() -> Settings:
    return load_settings(OVERLAY / "evenflow.toml")


def test_topics_and_users_of_the_overlay_are_those_of_its_settings() -> None:
    done = CliRunner().invoke(app, ["--config", str(OVERLAY / "evenflow.toml"), "topics", "strimzi"])
    assert done.output == (OVERLAY / "kafka/topics-and-users.yaml").read_text(), (
        "run `evenflow --config k8s/overlays/production/evenflow.toml topics strimzi` into the file"
    )


def test_rules_of_the_overlay_are_those_of_monitoring() -> None:
    assert (OVERLAY / "rules.yaml").read_text() == printed(), (
        "run `python -m monitoring.operator_rules` into it"
    )


def test_an_operator_makes_the_topics_that_evenflow_would_make(settings: Settings) -> None:
    made = [one["spec"] for one in manifests(settings, cluster="kafka") if one["kind"] == "KafkaTopic"]
    wanted = pipeline_topics(settings).values()
    assert [(one["topicName"], one["partitions"], one["config"]) for one in made] == [
        (spec.name, spec.partitions, spec.config) for spec in wanted
    ]
    assert {one["replicas"] for one in made} == {3}


@pytest.mark.parametrize("part", PARTS)
def test_no_part_may_write_what_another_one_makes(settings: Settings, part: str) -> None:
    written = {right.name for right in rights(settings, part) if "Write" in right.operations}
    only = {"routed": "partitioner", "partials": "combiner", "results": "reducer", "plan": "controller"}
    for role, maker in only.items():
        assert (settings.topic(role) in written) == (part == maker)


def test_an_input_topic_outside_of_the_query_is_let_in_by_name() -> None:
    settings = load_settings(
        query={"name": "q", "key": "k", "time": "t"}, input={"topic": "orders", "partitions": 2}
    )
    named = [right for right in rights(settings, "partitioner") if right.name == "orders"]
    assert [right.operations for right in named] == [("Describe", "DescribeConfigs"), ("Read",)]
    assert yaml.safe_dump(manifests(settings, cluster="k"))


def _split() -> Settings:
    return load_settings(
        query={"name": "q", "key": "k", "time": "t"},
        input={"partitions": 2},
        partitioner={"instances": 2, "speeds": "measured"},
        spark={"wiring": "split"},
    )


def _fits(right: Right, name: str) -> bool:
    return name.startswith(right.name) if right.prefix else name == right.name


@pytest.mark.parametrize("part", PARTS)
def test_the_rights_of_a_part_in_topics_are_those_of_the_matrix_and_no_others(part: str) -> None:
    settings = _split()
    for role in pipeline_topics(settings):
        granted = {
            operation
            for right in rights(settings, part)
            if right.kind == "topic" and _fits(right, settings.topic(role))
            for operation in right.operations
        }
        expected = {"R": "Read", "W": "Write"}
        assert granted - {"Describe", "DescribeConfigs"} == {
            expected[letter] for letter in MATRIX[role].get(part, "")
        }, role


@pytest.mark.parametrize("part", PARTS)
def test_a_transactional_id_has_one_part_that_may_use_it(part: str) -> None:
    granted = [right for right in rights(_split(), part) if right.kind == "transactionalId"]
    own = {name for name in IDS if any(_fits(right, f"q.{name}") for right in granted)}
    assert own == {name for name, owner in IDS.items() if owner == part}


@pytest.mark.parametrize("part", PARTS)
def test_the_rights_of_a_part_in_consumer_groups_are_those_of_the_table_and_no_others(part: str) -> None:
    granted = [right for right in rights(_split(), part) if right.kind == "group"]
    letters = {"Read": "R", "Describe": "D"}
    for name, parts in groups("q").items():
        operations = {one for right in granted if _fits(right, name) for one in right.operations}
        assert {letters[one] for one in operations} == set(parts.get(part, "")), name
    # No right is left that no row of the table is about.
    assert [right for right in granted if not any(_fits(right, name) for name in groups("q"))] == []


def test_who_verifies_may_only_look() -> None:
    looking = {"Read", "Describe", "DescribeConfigs"}
    assert {operation for right in rights(_split(), "tools") for operation in right.operations} <= looking


def test_no_part_may_make_change_or_delete_a_topic() -> None:
    operations = {one for part in PARTS for right in rights(_split(), part) for one in right.operations}
    assert operations == {"Read", "Write", "Describe", "DescribeConfigs"}
