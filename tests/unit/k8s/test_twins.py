"""Manifests that must stay alike, and probes that must be patient, as kustomize has no word for it."""

from pathlib import Path
from typing import Any

import yaml

from monitoring.health import PATIENCE

K8S = Path(__file__).parents[3] / "k8s"
DOCKERFILE = K8S.parent / "Dockerfile"


def loaded(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((K8S / file).read_text()))


def test_combiner_and_reducer_differ_in_their_name_only() -> None:
    text = (K8S / "base/spark.yaml").read_text()
    of_each = {"combiner": [], "reducer": []}  # type: dict[str, list[Any]]
    for one in yaml.safe_load_all(text):
        of_each[one["metadata"]["name"].removeprefix("evenflow-")].append(one)
    renamed = str(of_each["combiner"]).replace("combiner", "reducer").replace("'combine'", "'reduce'")
    assert renamed == str(of_each["reducer"])


def test_a_driver_is_replaced_only_once_it_is_known_to_be_gone() -> None:
    workloads = [one for one in loaded("base/spark.yaml") if one["kind"] != "Service"]
    assert [one["kind"] for one in workloads] == ["StatefulSet", "StatefulSet"], (
        "a Deployment may run two for a while"
    )
    assert [one["spec"]["replicas"] for one in workloads] == [1, 1]


def test_productions_executor_is_that_of_base_without_the_claim_and_spread_over_zones() -> None:
    (base,), (production,) = loaded("base/executor.yaml"), loaded("overlays/production/executor.yaml")
    assert production["spec"].pop("topologySpreadConstraints")
    (container,) = base["spec"]["containers"]
    container["volumeMounts"] = [one for one in container["volumeMounts"] if one["name"] != "checkpoint"]
    base["spec"]["volumes"] = [one for one in base["spec"]["volumes"] if one["name"] != "checkpoint"]
    assert production == base


def test_only_what_a_restart_may_heal_restarts_a_pod_and_only_after_a_minute_of_it() -> None:
    """`/healthy/` says after seconds what is wrong, so no liveness probe may ask it."""
    pods = [
        one["spec"]["template"]["spec"]
        for file in ("partitioner", "spark", "controller")
        for one in loaded(f"base/{file}.yaml")
        if "template" in one.get("spec", {})
    ]
    asked = {each["livenessProbe"]["httpGet"]["path"] for pod in pods for each in pod["containers"]}
    assert asked == {"/alive/"}
    assert PATIENCE >= 60


def test_an_image_is_unhealthy_only_after_a_minute_of_it() -> None:
    check = next(line for line in DOCKERFILE.read_text().splitlines() if line.startswith("HEALTHCHECK --"))
    words = dict(word.removeprefix("--").split("=") for word in check.split() if word.startswith("--"))
    assert int(words["interval"].removesuffix("s")) * (int(words["retries"]) - 1) >= 60
