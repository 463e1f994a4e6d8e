"""Manifests that must stay alike, as kustomize has no word for it."""

from pathlib import Path
from typing import Any

import yaml

K8S = Path(__file__).parents[3] / "k8s"


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
