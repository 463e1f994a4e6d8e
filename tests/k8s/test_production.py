"""`k8s/overlays/production` on a real API server that knows the resources of Strimzi and of the Prometheus
Operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenflow.errors import ServiceError
from tests.ground.kubernetes.definitions import PROMETHEUS_OPERATOR, STRIMZI
from tests.ground.kubernetes.kube import Kube
from tests.ground.waiting import wait_until
from tests.k8s.driver_pods import executor, tried, wait_for_quotas

pytestmark = [pytest.mark.k8s, pytest.mark.more]
OVERLAY = Path(__file__).parents[2] / "k8s/overlays/production"
SPACE, KAFKA = "evenflow", "kafka"
_STRICTLY = ("apply", "--server-side", "--validate=strict")


@pytest.fixture(scope="module")
def rendered(api_server: Kube) -> list[dict[str, Any]]:
    folders = (OVERLAY / "kafka", OVERLAY)
    return [one for folder in folders for one in yaml.safe_load_all(api_server.kubectl("kustomize", folder))]


@pytest.fixture(scope="module")
def applied(api_server: Kube) -> Iterator[Kube]:
    for definitions in (PROMETHEUS_OPERATOR, STRIMZI):
        api_server.kubectl(*_STRICTLY, "-f", definitions.folder())
    # `kubectl wait` ends at once where a definition has no conditions yet.
    wait_until(
        lambda: all(map(_established, api_server.get("crd")["items"])), "a definition is not established"
    )
    api_server.kubectl(*_STRICTLY, "-f", OVERLAY / "namespace.yaml")
    api_server.kubectl(*_STRICTLY, "-f", OVERLAY / "kafka/namespace.yaml")
    api_server.kubectl(*_STRICTLY, "-k", OVERLAY / "kafka")
    api_server.kubectl(*_STRICTLY, "-k", OVERLAY)
    yield api_server
    api_server.kubectl("delete", "namespace", SPACE, KAFKA, "--wait=false")


def test_a_strict_api_server_takes_all_of_it(applied: Kube) -> None:
    result = applied.get("podmonitors,prometheusrules,statefulsets,deployments", f"--namespace={SPACE}")
    assert {(one["kind"], one["metadata"]["name"]) for one in result["items"]} == {
        ("PodMonitor", "evenflow"),
        ("PrometheusRule", "evenflow"),
        ("Deployment", "evenflow-controller"),
        *(("StatefulSet", f"evenflow-{part}") for part in ("partitioner", "combiner", "reducer")),
    }


def test_nothing_of_it_is_warned_of_and_each_kind_of_operator_has_its_own(applied: Kube) -> None:
    for folder in (OVERLAY / "kafka", OVERLAY):
        applied.kubectl(*_STRICTLY, "--warnings-as-errors", "--dry-run=server", "-k", folder)
    for kind in ("kafka", "kafkanodepool", "kafkatopic", "kafkauser"):
        assert applied.get(kind, f"--namespace={KAFKA}")["items"], kind
        assert not applied.get(kind, f"--namespace={SPACE}")["items"], kind
    for kind in ("podmonitor", "prometheusrule"):
        assert applied.get(kind, f"--namespace={SPACE}")["items"], kind


def test_an_apply_leaves_the_scale_to_the_controller(applied: Kube) -> None:
    partitioner = ("statefulset/evenflow-partitioner", f"--namespace={SPACE}")
    applied.kubectl("scale", *partitioner, "--replicas=5")
    applied.kubectl(*_STRICTLY, "-k", OVERLAY)
    assert applied.get(*partitioner)["spec"]["replicas"] == 5


def test_a_pod_has_the_priority_of_the_stream_or_of_executors_or_none(applied: Kube) -> None:
    wait_for_quotas(applied)
    for priority in ("system-node-critical", "system-cluster-critical"):
        with pytest.raises(ServiceError, match="exceeded quota: evenflow-priority"):
            tried(applied, executor(priorityClassName=priority))
    for priority in ("evenflow-stream", "evenflow-executor", None):
        assert (
            tried(applied, executor(priorityClassName=priority))["spec"].get("priorityClassName") == priority
        )


def test_a_slip_of_the_pen_in_a_rule_is_refused(applied: Kube, rendered: list[dict[str, Any]]) -> None:
    rule = next(one for one in rendered if one["kind"] == "PrometheusRule")
    rule["spec"]["groups"][0]["rules"][0]["exprs"] = "1"
    with pytest.raises(ServiceError, match="exprs"):
        applied.apply(rule)


def test_each_part_has_the_secret_of_its_own_user_and_no_claim(rendered: list[dict[str, Any]]) -> None:
    users = {one["metadata"]["name"] for one in rendered if one["kind"] == "KafkaUser"}
    workloads = [one for one in rendered if one["kind"] in ("StatefulSet", "Deployment")]
    for one in workloads:
        volumes = one["spec"]["template"]["spec"]["volumes"]
        secrets = {volume["secret"]["secretName"] for volume in volumes if "secret" in volume}
        assert secrets == {"kafka-cluster-ca-cert", one["metadata"]["name"]}
        assert one["metadata"]["name"] in users
        assert not any("persistentVolumeClaim" in volume for volume in volumes)
    assert len(workloads) == 4


def test_dashboards_carry_the_label_that_grafanas_sidecar_looks_for(rendered: list[dict[str, Any]]) -> None:
    maps = [one for one in rendered if one["kind"] == "ConfigMap"]
    dashboards = [one for one in maps if "overview.json" in one["data"]]
    assert [one["metadata"]["labels"]["grafana_dashboard"] for one in dashboards] == ["1"]
    assert len(maps) == 3, "the settings, the executor's template, the dashboards"


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
