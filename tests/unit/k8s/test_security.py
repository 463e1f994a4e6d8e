"""What the manifests allow, and what they do not: pods of the profile `restricted`, networks, rights, room
on disks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from spark_consumers.cluster import own_pod

K8S = Path(__file__).parents[3] / "k8s"
_PATCHES = {"overlays/production/parts.yaml"}
_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
    "secret",
}  # fmt: skip


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(K8S.rglob("*.yaml")):
        name = str(file.relative_to(K8S))
        if name not in _PATCHES:
            yield from ((name, one) for one in yaml.safe_load_all(file.read_text()) if one)


def pods() -> dict[str, dict[str, Any]]:
    result = {}
    for file, one in manifests():
        spec = one.get("spec", {})
        pod = spec if one["kind"] == "Pod" else spec.get("template", {}).get("spec")
        if pod is not None and "containers" in pod:
            result[f"{file}: {one['metadata'].get('name', 'executor')}"] = pod
    return result


PODS = pods()


def unmet(pod: dict[str, Any]) -> list[str]:
    """What the profile `restricted` of the Pod Security Standards demands, and the pod does not meet."""
    whole = pod.get("securityContext", {})
    missing = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    for volume in pod.get("volumes", []):
        missing += [f"volume of {kind}" for kind in volume.keys() - {"name"} - _VOLUMES]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        own = container.get("securityContext", {})
        both = whole | own
        met = {
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "runAsNonRoot": both.get("runAsNonRoot") is True,
            "runAsUser": both.get("runAsUser") != 0,
            "seccompProfile": both.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "privileged": not own.get("privileged"),
            "hostPort": not any("hostPort" in port for port in container.get("ports", [])),
        }
        missing += [name for name, holds in met.items() if not holds]
    return missing


def test_all_pods_are_looked_at() -> None:
    assert {name.partition(": ")[2] for name in PODS} >= {
        *(f"evenflow-{part}" for part in ("partitioner", "controller", "combiner", "reducer", "replay",
        "verify")),
        "executor", "kafka", "prometheus", "grafana",
    }  # fmt: skip


@pytest.mark.parametrize("name", PODS)
def test_every_pod_fits_the_profile_restricted(name: str) -> None:
    assert unmet(PODS[name]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"hostNetwork": True},
        {"volumes": [{"name": "x", "hostPath": {"path": "/"}}]},
        {"securityContext": {}},
    ],
)
def test_a_pod_that_does_not_fit_the_profile_is_noticed(change: dict[str, Any]) -> None:
    pod = PODS["base/controller.yaml: evenflow-controller"]
    assert unmet(pod | change)


@pytest.mark.parametrize("overlay", ["local", "production"])
def test_the_namespace_of_the_pipeline_enforces_the_profile(overlay: str) -> None:
    (space,) = yaml.safe_load_all((K8S / f"overlays/{overlay}/namespace.yaml").read_text())
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("name", PODS)
def test_no_pod_can_fill_the_disk_of_its_node(name: str) -> None:
    for volume in PODS[name].get("volumes", []):
        assert "emptyDir" not in volume or "sizeLimit" in volume["emptyDir"], volume["name"]
    for container in PODS[name]["containers"]:
        assert "ephemeral-storage" in container["resources"]["limits"]


@pytest.mark.parametrize("name", [name for name in PODS if not name.endswith(": kafka")])
def test_root_file_systems_are_read_only(name: str) -> None:
    for container in PODS[name]["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def policies(*files: str) -> dict[str, dict[str, Any]]:
    return {
        one["metadata"]["name"]: one["spec"]
        for file, one in manifests()
        if one["kind"] == "NetworkPolicy" and (not files or file in files)
    }


def test_what_no_policy_names_is_denied_in_both_directions() -> None:
    assert policies("base/network.yaml")["evenflow-default"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
    }
    local = policies("overlays/local/network.yaml")["evenflow-egress"]
    production = policies("overlays/production/egress.yaml")["evenflow-default-egress"]
    assert (local["podSelector"], local["policyTypes"]) == ({}, ["Egress"])
    assert production == {"podSelector": {}, "policyTypes": ["Egress"]}


def test_what_no_policy_names_is_denied_in_the_namespace_of_productions_kafka() -> None:
    default = policies("overlays/production/kafka/network.yaml")["kafka-default"]
    assert default == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    kustomization = (K8S / "overlays/production/kafka/kustomization.yaml").read_text()
    assert "network.yaml" in yaml.safe_load(kustomization)["resources"]


def test_pods_of_productions_kafka_reach_one_another_names_and_the_api_server() -> None:
    egress = policies("overlays/production/kafka/network.yaml")["kafka-egress"]
    assert (egress["podSelector"], egress["policyTypes"]) == ({}, ["Egress"])
    assert [rule for rule in egress["egress"] if "ports" not in rule] == [{"to": [{"podSelector": {}}]}]
    pipeline = policies("overlays/production/egress.yaml")["evenflow-egress"]["egress"]
    assert all(rule in pipeline for rule in egress["egress"] if "ports" in rule)


@pytest.mark.parametrize("space", ["", "kafka/"])
def test_the_profile_of_each_namespace_of_production_is_that_of_the_page_on_security(space: str) -> None:
    (made,) = yaml.safe_load_all((K8S / f"overlays/production/{space}namespace.yaml").read_text())
    labels = made["metadata"]["labels"]
    profile = labels["pod-security.kubernetes.io/enforce"]
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"
    page = " ".join((K8S.parent / "docs/security.md").read_text().split())
    assert f"the namespace `{made['metadata']['name']}` enforces the profile `{profile}`" in page


@pytest.mark.parametrize(
    "file",
    [
        "overlays/local/network.yaml",
        "overlays/production/egress.yaml",
        "overlays/production/kafka/network.yaml",
    ],
)
def test_names_are_asked_of_the_clusters_own_resolver_alone(file: str) -> None:
    """A question for a name carries data to whoever answers it."""
    rules = [rule for policy in policies(file).values() for rule in policy.get("egress", [])]
    assert rules
    anywhere = [port["port"] for rule in rules if "to" not in rule for port in rule["ports"]]
    assert sorted(anywhere) == [443, 6443]
    resolvers = [rule for rule in rules if any(port["port"] in (53, 5353) for port in rule.get("ports", []))]
    assert len(resolvers) == 2
    for rule in resolvers:
        for peer in rule["to"]:
            assert set(peer) == {"namespaceSelector", "podSelector"}
            assert all(selector["matchLabels"] for selector in peer.values())


def test_whoever_may_open_a_connection_is_named_with_the_namespace() -> None:
    peers = [
        peer
        for policy in policies().values()
        for rule in policy.get("ingress", [])
        for peer in rule.get("from", [{}])
    ]
    assert peers
    for peer in peers:
        assert peer.get("podSelector"), "each peer is named by labels"
        assert "namespaceSelector" not in peer, "of this namespace, unless an overlay names another one"
    patch = (K8S / "overlays/production/kustomization.yaml").read_text()
    assert "kubernetes.io/metadata.name: monitoring" in patch


def test_productions_kafka_has_a_namespace_of_its_own_and_names_who_may_reach_it() -> None:
    kafka = K8S / "overlays/production/kafka"
    assert yaml.safe_load((kafka / "kustomization.yaml").read_text())["namespace"] == "kafka"
    outside = [
        (file, one["kind"])
        for file, one in manifests()
        if one["apiVersion"].startswith("kafka.strimzi.io")
        and not file.startswith("overlays/production/kafka/")
    ]
    assert outside == []
    cluster = next(
        one for one in yaml.safe_load_all((kafka / "kafka.yaml").read_text()) if one["kind"] == "Kafka"
    )
    for listener in cluster["spec"]["kafka"]["listeners"]:
        assert listener["authentication"]
        for peer in listener["networkPolicyPeers"]:
            assert {"namespaceSelector", "podSelector"} == set(peer)


def test_no_account_may_read_secrets_or_delete_what_it_has_not_made() -> None:
    for file, one in manifests():
        for rule in one.get("rules", []) if one["kind"] == "Role" else []:
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]], file
            assert "secrets" not in rule["resources"], file
            if {"delete", "deletecollection"} & set(rule["verbs"]):
                assert set(rule["resources"]) <= {"pods", "configmaps"}, file


def test_spark_asks_to_delete_no_service_and_no_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = own_pod_conf(monkeypatch, image="evenflow/spark", image_pull_policy="Never")
    assert conf["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert conf["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"


def test_executors_have_the_image_of_their_driver_and_pull_it_as_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conf = own_pod_conf(monkeypatch, image="evenflow/spark", image_pull_policy="Never")
    assert conf["spark.kubernetes.container.image"] == "evenflow/spark"
    assert conf["spark.kubernetes.container.image.pullPolicy"] == "Never"


def own_pod_conf(monkeypatch: pytest.MonkeyPatch, **driver: str) -> dict[str, str]:
    """What a driver tells Spark whose container is this one, behind another one."""
    containers = [
        SimpleNamespace(name="proxy", image="proxy", image_pull_policy="Always"),
        SimpleNamespace(name="driver", **driver),
    ]
    pod = SimpleNamespace(spec=SimpleNamespace(containers=containers))
    api = SimpleNamespace(CoreV1Api=lambda: SimpleNamespace(read_namespaced_pod=lambda *_, **__: pod))
    monkeypatch.setattr(own_pod, "own_namespace", lambda: "evenflow")
    monkeypatch.setattr(own_pod, "connected", lambda what: SimpleNamespace(client=api))
    monkeypatch.setattr(own_pod, "missing", lambda *_: [])
    return own_pod.own_pod_conf()


@pytest.mark.parametrize("file", ["k8s/overlays/local/grafana.yaml", "compose.yaml"])
def test_grafana_has_no_administrator_and_no_login(file: str) -> None:
    text = (K8S.parent / file).read_text()
    words = text.replace("{name: ", "").replace(", value", "").replace("}", "").replace('"', "")
    for line in (
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: true",
        "GF_AUTH_DISABLE_LOGIN_FORM: true",
        "GF_AUTH_BASIC_ENABLED: false",
        "GF_AUTH_ANONYMOUS_ORG_ROLE: Viewer",
    ):
        assert line in words, line
