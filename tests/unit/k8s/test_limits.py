"""What the pods of a namespace may take together, against what the manifests need at their largest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenflow.scale import Demand, measured, quota_lines, sizes
from evenflow.settings import Settings, load_settings
from spark_consumers.cluster.demand import most_executors

K8S = Path(__file__).parents[3] / "k8s"
OVERLAYS = ("local", "production")
SETTINGS = {"local": "base/evenflow.toml", "production": "overlays/production/evenflow.toml"}
OTHER_FILES = {
    "local": ("overlays/local/kafka", "overlays/local/prometheus", "overlays/local/grafana", "demo/replay",
    "demo/verify"),
    "production": ("overlays/production/verify",),
}  # fmt: skip
"""Manifests of further pods of the namespace, each of which there is one of."""
_MEASURES = {
    "pods": None,
    "requests.cpu": ("requests", "cpu"),
    "limits.memory": ("limits", "memory"),
    "limits.ephemeral-storage": ("limits", "ephemeral-storage"),
}
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3}


def amount(text: str) -> float:
    """Of a quantity as Kubernetes writes it."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text)


def loaded(file: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((K8S / file).read_text())


def objects(overlay: str, kind: str) -> dict[str, dict[str, Any]]:
    made = loaded(f"overlays/{overlay}/limits.yaml")
    return {one["metadata"]["name"]: one["spec"] for one in made if one["kind"] == kind}


def settings(overlay: str) -> Settings:
    return load_settings(K8S / SETTINGS[overlay])


@dataclass(frozen=True)
class Pods:
    """So many pods of one container."""

    name: str
    count: int
    resources: dict[str, dict[str, str]]
    priority: str | None

    def need(self, measure: str) -> float:
        place = _MEASURES[measure]
        if place is None:
            return self.count
        table, name = place
        return self.count * amount(self.resources[table][name])


def pods(overlay: str) -> Iterator[Pods]:
    """All that the manifests make at their largest: each instance of the partitioner, each executor that a
    plan can ask for, and a third controller while one is replaced.
    """
    how = settings(overlay)
    counts = {"partitioner": how.partitioner.instances, "controller": 3, "combiner": 1, "reducer": 1}
    patches = _patches(overlay)
    for file in ("partitioner", "controller", "spark"):
        for one in loaded(f"base/{file}.yaml"):
            if one["kind"] in ("StatefulSet", "Deployment"):
                name = one["metadata"]["name"]
                patch = patches.get(name, {"containers": [{}]})
                resources = _merged(_container(one["spec"]["template"]["spec"]), patch["containers"][0])
                name = name.removeprefix("evenflow-")
                count = counts[name]
                yield Pods(name, count, resources, patch.get("priorityClassName"))
    for file in OTHER_FILES[overlay]:
        for one in loaded(f"{file}.yaml"):
            if "template" in one.get("spec", {}):
                spec = one["spec"]["template"]["spec"]
                yield Pods(file, 1, _container(spec)["resources"], spec.get("priorityClassName"))
    yield _executors(overlay, how)


def _executors(overlay: str, how: Settings) -> Pods:
    """Spark states memory and cores of an executor beside what its template says."""
    template = next(loaded(SETTINGS[overlay].replace("evenflow.toml", "executor.yaml")))
    memory = sum(
        amount(text.replace("m", "Mi").replace("g", "Gi"))
        for text in (how.spark.executor_memory, how.spark.conf["spark.executor.memoryOverhead"])
    )
    own = {
        "requests": {"cpu": how.spark.conf["spark.kubernetes.executor.request.cores"]},
        "limits": {"memory": str(memory)},
    }
    count = sum(most_executors(how, [stage]) for stage in ("combine", "reduce"))
    resources = _merged(_container(template["spec"]), {"resources": own})
    return Pods("executor", count, resources, template["spec"]["priorityClassName"])


def _patches(overlay: str) -> dict[str, dict[str, Any]]:
    """Name of a workload -> the overlay's patch of its pods."""
    file = K8S / f"overlays/{overlay}/parts.yaml"
    parts = yaml.safe_load_all(file.read_text()) if file.exists() else ()
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in parts}


def _container(spec: dict[str, Any]) -> dict[str, Any]:
    (container,) = spec["containers"]
    return dict(container)


def _merged(container: dict[str, Any], patch: dict[str, Any]) -> dict[str, dict[str, str]]:
    own, more = container["resources"], patch.get("resources", {})
    return {table: own[table] | more.get(table, {}) for table in ("requests", "limits")}


@pytest.mark.parametrize("measure", _MEASURES)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_namespace_has_room_for_twice_what_the_pipeline_needs_and_not_much_more(
    overlay: str, measure: str
) -> None:
    """Twice: while drivers are replaced, their old executors may still be there beside the new ones."""
    most = amount(objects(overlay, "ResourceQuota")["evenflow"]["hard"][measure])
    need = sum(one.need(measure) for one in pods(overlay))
    assert 2 * need <= most <= 3 * need


def test_what_evenflow_size_prints_has_room_for_twice_its_pipeline_beside_the_other_pods_of_production() -> (
    None
):
    """Each application of the split wiring asks for its own executors."""
    plan = sizes(Demand(rate=1e7, workers=1_000, keys=10**7, delay=5.0), measured()[0])
    memory, cores = plan.memory, float(plan.demand.executor_cores)
    own = {
        "partitioner": (plan.shape.instances, 1.0, memory.instance),
        "combiner": (1, 1.0, memory.driver_heap + 2**30),
        "reducer": (1, 1.0, memory.driver_heap + 2**30),
        "executor": (2 * plan.executors, cores, memory.executor_heap + memory.executor_overhead),
    }
    need = dict.fromkeys(_MEASURES, 0.0)
    for one in pods("production"):
        made = one
        if one.name in own:
            count, cpu, size = own[one.name]
            limits = one.resources["limits"] | {"memory": str(size)}
            requests = one.resources["requests"] | {"cpu": str(cpu)}
            made = replace(one, count=count, resources={"requests": requests, "limits": limits})
        for measure in _MEASURES:
            need[measure] += made.need(measure)
    quota, stream = yaml.safe_load_all(quota_lines(plan))
    for measure, least in need.items():
        assert 2 * least <= amount(quota["spec"]["hard"][measure]) <= 2.3 * least
    names = {one["metadata"]["name"] for one in loaded("overlays/production/limits.yaml")}
    assert {quota["metadata"]["name"], stream["metadata"]["name"]} <= names
    assert amount(stream["spec"]["hard"]["pods"]) == plan.shape.instances + 8


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_need_that_the_comment_states_is_that_of_the_manifests(overlay: str) -> None:
    text = " ".join((K8S / f"overlays/{overlay}/limits.yaml").read_text().replace("\n# ", " ").split())
    need = {measure: sum(one.need(measure) for one in pods(overlay)) for measure in _MEASURES}
    gib = 2**30
    assert f"{need['pods']:.0f} pods" in text
    assert f"{need['requests.cpu']:.0f} CPUs" in text
    assert f"{need['limits.memory'] / gib:.0f} GiB of memory" in text
    assert f"{need['limits.ephemeral-storage'] / gib:.0f} GiB on disks" in text


def test_the_page_has_the_needs_and_the_bounds() -> None:
    page = (K8S.parent / "docs/deploy.md").read_text()
    names = ("pods", "requests of CPU", "limits of memory", "limits of disk (`ephemeral-storage`)")
    for name, measure in zip(names, _MEASURES, strict=True):
        cells = []
        for overlay in OVERLAYS:
            need = sum(one.need(measure) for one in pods(overlay))
            bound = amount(objects(overlay, "ResourceQuota")["evenflow"]["hard"][measure])
            bytes_are_counted = measure.startswith("limits")
            cells += [
                f"{one / 2**30:.0f} GiB" if bytes_are_counted else f"{one:.0f}" for one in (need, bound)
            ]
        assert f"| {name} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_of_the_manifests_states_what_the_quota_counts(overlay: str) -> None:
    """Then the defaults of the LimitRange change none of them."""
    (item,) = objects(overlay, "LimitRange")["evenflow"]["limits"]
    assert item["type"] == "Container"
    assert "cpu" not in item["default"], "it would bound the CPU of every container of the pipeline"
    assert not {"max", "min", "maxLimitRequestRatio"} & set(item), "these would refuse or change pods"
    for one in pods(overlay):
        assert set(item["defaultRequest"]) - {"memory"} <= set(one.resources["requests"])
        assert set(item["default"]) <= set(one.resources["limits"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_container_that_says_nothing_gets_what_the_quota_counts(overlay: str) -> None:
    (item,) = objects(overlay, "LimitRange")["evenflow"]["limits"]
    for place in filter(None, _MEASURES.values()):
        table, name = place
        assert name in item[{"requests": "defaultRequest", "limits": "default"}[table]]


def allowed(overlay: str, priority: str | None) -> float:
    """How many pods of this class of priority the quotas of the namespace let in."""
    quotas = objects(overlay, "ResourceQuota").values()
    return min(amount(one["hard"]["pods"]) for one in quotas if _counts(one, priority))


def _counts(quota: dict[str, Any], priority: str | None) -> bool:
    """Whether the quota is about pods of this class, as the API server decides it."""
    answers = {
        "In": lambda values: priority in values,
        "NotIn": lambda values: priority not in values,
        "Exists": lambda values: priority is not None,
    }
    selected = quota.get("scopeSelector", {"matchExpressions": []})["matchExpressions"]
    assert all(one["scopeName"] == "PriorityClass" for one in selected)
    return all(answers[one["operator"]](one.get("values")) for one in selected)


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("priority", ["system-node-critical", "system-cluster-critical"])
def test_no_pod_may_have_the_priority_of_what_the_cluster_stands_on(overlay: str, priority: str) -> None:
    assert allowed(overlay, priority) == 0


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_class_of_priority_that_the_manifests_name_has_room_for_all_their_pods(overlay: str) -> None:
    for priority in {one.priority for one in pods(overlay)}:
        needed = sum(one.count for one in pods(overlay) if one.priority == priority)
        assert needed <= allowed(overlay, priority), priority


def test_in_production_every_pod_has_a_class_and_none_but_those_of_the_manifests_is_let_in() -> None:
    assert {one.priority for one in pods("production")} == {"evenflow-stream", "evenflow-executor"}
    assert allowed("production", "of-somebody-else") == 0
    stream = sum(one.count for one in pods("production") if one.priority == "evenflow-stream")
    assert stream < allowed("production", "evenflow-stream") <= stream + 4


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_overlay_has_the_limits_and_room_for_its_claims(overlay: str) -> None:
    (kustomization,) = loaded(f"overlays/{overlay}/kustomization.yaml")
    assert "limits.yaml" in kustomization["resources"]
    claims = [
        one["spec"]["resources"]["requests"]["storage"]
        for file in (K8S / f"overlays/{overlay}").glob("*.yaml")
        for one in yaml.safe_load_all(file.read_text())
        if one["kind"] == "PersistentVolumeClaim"
    ]
    hard = objects(overlay, "ResourceQuota")["evenflow"]["hard"]
    assert int(hard["persistentvolumeclaims"]) == len(claims)
    assert amount(hard.get("requests.storage", "0")) == sum(map(amount, claims))
