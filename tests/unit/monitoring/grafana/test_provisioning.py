"""Grafana's provisioning files, held against what Grafana reads (its provisioning packages, apiVersion 1).

Grafana ignores a field that it does not know, so a slip of the pen would be silent: these models are strict.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from monitoring.grafana.__main__ import FOLDER

PROVISIONING = FOLDER.parent / "provisioning"
DATASOURCES, DASHBOARDS = "datasources/prometheus.yml", "dashboards/evenflow.yml"
GUIDE = (Path(__file__).parents[4] / "docs/operations/alerts.md").read_text()
Uid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")]
Text = Annotated[str, Field(min_length=1)]
OrgId = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class PrometheusOptions(Strict):
    """jsonData of a source of type prometheus: those that these files may use."""

    http_method: Literal["GET", "POST"] = "POST"
    time_interval: Annotated[str, Field(pattern=r"^\d+(ms|s|m)$")] | None = None


class Datasource(Strict):
    name: Text
    type: Literal["prometheus"]
    access: Literal["proxy", "direct"]
    url: Annotated[str, Field(pattern=r"^(https?://|\$\{[A-Z_]+\}$)")]
    org_id: OrgId = 1
    org_name: str = ""
    version: int = 0
    user: str = ""
    database: str = ""
    basic_auth: bool = False
    basic_auth_user: str = ""
    with_credentials: bool = False
    is_default: bool = False
    correlations: list[dict[str, Any]] = []
    json_data: PrometheusOptions = PrometheusOptions()
    secure_json_data: dict[str, str] = {}
    editable: bool = False
    uid: Uid = ""


class Deleted(Strict):
    name: Text
    org_id: OrgId = 1
    org_name: str = ""


class Datasources(Strict):
    api_version: Annotated[int, Field(ge=1, le=1)]
    datasources: Annotated[list[Datasource], Field(min_length=1)]
    delete_datasources: list[Deleted] = []
    prune: bool = False


class FileOptions(Strict):
    """Of a provider of type file."""

    path: Annotated[str, Field(pattern=r"^/")]
    folders_from_files_structure: bool = False


class Provider(Strict):
    name: Text
    type: Literal["file"] = "file"
    options: FileOptions
    org_id: OrgId = 1
    folder: str = ""
    folder_uid: Uid = ""
    editable: bool = False
    disable_deletion: bool = False
    update_interval_seconds: Annotated[int, Field(ge=0)] = 0
    allow_ui_updates: bool = False


class Dashboards(Strict):
    api_version: Annotated[int, Field(ge=1, le=1)]
    providers: Annotated[list[Provider], Field(min_length=1)]


MODELS: dict[str, type[Strict]] = {DATASOURCES: Datasources, DASHBOARDS: Dashboards}


def provisioned(file: str) -> Any:
    return yaml.safe_load((PROVISIONING / file).read_text())


def boards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))]


def sources(part: Any) -> set[tuple[str, str]]:
    """(type, uid) of every data source that a part of a dashboard refers to."""
    if isinstance(part, list):
        return set().union(*map(sources, part))
    if not isinstance(part, dict):
        return set()
    own = part.get("datasource")
    named = {(own["type"], own["uid"])} if isinstance(own, dict) else set()
    return named.union(*map(sources, part.values()))


@pytest.mark.parametrize("file", MODELS)
def test_a_provisioning_file_has_the_fields_that_grafana_reads_and_no_other(file: str) -> None:
    MODELS[file].model_validate(provisioned(file))


def test_every_provisioning_file_is_looked_at() -> None:
    there = {str(path.relative_to(PROVISIONING)) for path in PROVISIONING.rglob("*") if path.is_file()}
    assert there == set(MODELS)


@pytest.mark.parametrize(
    ("file", "list_of", "change"),
    [
        (DATASOURCES, "datasources", {"isdefault": True}),
        (DATASOURCES, "datasources", {"isDefault": "yes"}),
        (DATASOURCES, "datasources", {"access": "server"}),
        (DASHBOARDS, "providers", {"options": {"folder": "/var"}}),
        (DASHBOARDS, "providers", {"disable_deletion": True}),
        (DASHBOARDS, "providers", {"orgId": "1"}),
    ],
)
def test_a_slip_of_the_pen_is_noticed(file: str, list_of: str, change: dict[str, Any]) -> None:
    wrong = provisioned(file)
    wrong[list_of][0] |= change
    with pytest.raises(ValidationError):
        MODELS[file].model_validate(wrong)


def test_names_are_there_once_and_at_most_one_source_is_the_default() -> None:
    result = Datasources.model_validate(provisioned(DATASOURCES)).datasources
    providers = Dashboards.model_validate(provisioned(DASHBOARDS)).providers
    assert len({source.name for source in result}) == len(result)
    assert len({provider.name for provider in providers}) == len(providers)
    assert sum(source.is_default for source in result) <= 1


def test_every_source_that_a_dashboard_refers_to_is_provisioned() -> None:
    """By its uid, or by a variable of the dashboard that offers sources of a type that there is."""
    known = Datasources.model_validate(provisioned(DATASOURCES)).datasources
    types, uids = {source.type for source in known}, {source.uid for source in known if source.uid}
    for board in boards():
        chosen = {
            "${" + variable["name"] + "}": variable["query"]
            for variable in board["templating"]["list"]
            if variable["type"] == "datasource"
        }
        for kind, uid in sources(board):
            assert kind in types
            assert uid in uids or chosen.get(uid) == kind


def test_dashboards_are_told_apart_and_link_to_each_other() -> None:
    result = boards()
    assert len({board["uid"] for board in result}) == len({board["title"] for board in result}) == len(result)
    for board in result:
        assert len(board["uid"]) <= 40
        for link in board["links"]:
            others = [other for other in result if set(link["tags"]) <= set(other["tags"])]
            assert (link["type"], len(others)) == ("dashboards", len(result))


def test_the_guide_says_where_the_dashboards_are_to_be_copied() -> None:
    (provider,) = Dashboards.model_validate(provisioned(DASHBOARDS)).providers
    assert FOLDER.is_dir()
    assert provider.options.path in GUIDE
