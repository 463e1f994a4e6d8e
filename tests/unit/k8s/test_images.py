"""Where images come from: evenflow publishes none, so no pod may take one of that name from Docker Hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
K8S = ROOT / "k8s"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
BUILT = [name for name, service in COMPOSE.items() if "build" in service]


def loaded(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((K8S / file).read_text()))


def containers(*files: str) -> list[dict[str, Any]]:
    """Those of the workloads and Jobs of these files."""
    specs = [one.get("spec", {}).get("template", {}).get("spec") for file in files for one in loaded(file)]
    return [container for spec in specs if spec for container in spec["containers"]]


BASE = {
    one["image"] for one in containers("base/partitioner.yaml", "base/spark.yaml", "base/controller.yaml")
}


def test_compose_builds_what_it_can_build_and_asks_no_registry_for_it() -> None:
    assert set(BUILT) == {"partitioner", "spark", "controller", "replay", "verify"}
    for name in BUILT:
        assert COMPOSE[name]["pull_policy"] == "${PULL_POLICY:-build}", name
    for name, service in COMPOSE.items():
        assert name in BUILT or "evenflow" not in service["image"], name


@pytest.mark.parametrize("name", COMPOSE)
def test_a_service_of_compose_has_no_capabilities_and_gets_no_privileges(name: str) -> None:
    assert COMPOSE[name]["cap_drop"] == ["ALL"]
    assert COMPOSE[name]["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", [*BUILT, "prometheus"])
def test_a_service_of_compose_writes_to_volumes_alone(name: str) -> None:
    assert COMPOSE[name]["read_only"] is True


def test_the_overlay_for_one_node_pulls_no_image_of_evenflow() -> None:
    (kustomization,) = loaded("overlays/local/kustomization.yaml")
    (patch,) = kustomization["patches"]
    assert patch["target"] == {
        "kind": "StatefulSet|Deployment",
        "labelSelector": "app.kubernetes.io/name=evenflow",
    }
    assert yaml.safe_load(patch["patch"]) == [
        {"op": "add", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": "Never"}
    ]
    # The patch names the first container, and the workloads of base have no other one.
    assert len(containers("base/partitioner.yaml", "base/spark.yaml", "base/controller.yaml")) == 4
    others = {one["image"] for one in containers(*_yaml("overlays/local"))}
    assert others
    assert not any("evenflow" in image for image in others)


def test_the_jobs_of_the_demo_pull_no_image() -> None:
    jobs = containers("demo/replay.yaml", "demo/verify.yaml")
    assert [(one["image"].partition(":")[0], one["imagePullPolicy"]) for one in jobs] == [
        ("evenflow/tools", "Never")
    ] * 2


def test_a_name_that_was_forgotten_in_production_leads_to_no_registry() -> None:
    (kustomization,) = loaded("overlays/production/kustomization.yaml")
    assert {one["name"]: one["newName"] for one in kustomization["images"]} == {
        image: f"registry.invalid/{image}" for image in BASE
    }
    (verify,) = containers("overlays/production/verify.yaml")
    assert verify["image"].startswith("registry.invalid/evenflow/tools:")


def test_no_other_manifest_names_an_image_of_evenflow() -> None:
    """What base names, each overlay above renames or never pulls."""
    named = {
        str(file.relative_to(K8S))
        for file in K8S.rglob("*.yaml")
        if re.search(r"^\s*(- )?image: evenflow/", file.read_text(), re.MULTILINE)
    }
    assert named == {
        *(f"base/{part}.yaml" for part in ("partitioner", "spark", "controller")),
        *(f"demo/{job}.yaml" for job in ("replay", "verify")),
    }


def _yaml(folder: str) -> list[str]:
    """The manifests in that folder, without its kustomization."""
    files = sorted((K8S / folder).glob("*.yaml"))
    return [str(file.relative_to(K8S)) for file in files if file.name != "kustomization.yaml"]
