"""The API server alone: what it refuses, who may scale, whose Lease it is. Nothing runs in its pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import (
    ApiException,
    AppsV1Api,
    CoordinationV1Api,
    CoreV1Api,
    V1Lease,
    V1LeaseSpec,
    V1ObjectMeta,
)

from evenflow.errors import ServiceError
from tests.ground.kubernetes import api_server as servers
from tests.ground.kubernetes.kube import Kube

pytestmark = pytest.mark.k8s
SCALER = "scaler"


@pytest.fixture(scope="module")
def kube(simulated: Kube) -> Kube:
    return simulated


@pytest.fixture
def workers(kube: Kube, namespace: str) -> str:
    """A Deployment, and an account that may scale just that one. Gives the account's user name."""
    kube.apply(_deployment(namespace), *_may_scale(namespace))
    _wait_for_replicas(kube, namespace, 1)
    return f"system:serviceaccount:{namespace}:{SCALER}"


def test_an_api_server_that_is_there_is_taken_and_left_running(kube: Kube, tmp_path: Path) -> None:
    with servers.api_server(environment={servers.EXISTING: str(kube.kubeconfig)}) as taken:
        assert taken.kubeconfig == kube.kubeconfig
        taken.kubectl("create", "namespace", "of-somebody")
    assert kube.get("namespace", "of-somebody")["metadata"]["name"] == "of-somebody"
    kube.kubectl("delete", "namespace", "of-somebody", "--wait=false")
    nobody = tmp_path / "nobody"
    nobody.write_text("")
    with (
        pytest.raises(ServiceError, match="kubectl get namespaces"),
        servers.api_server(environment={servers.EXISTING: str(nobody)}),
    ):
        pass


def test_a_field_that_does_not_exist_is_refused(kube: Kube, namespace: str) -> None:
    wrong = _deployment(namespace)
    wrong["spec"]["replicaz"] = 3
    with pytest.raises(ServiceError, match="replicaz"):
        kube.apply(wrong)


def test_the_scale_subresource_goes_from_1_to_3_to_1(kube: Kube, namespace: str, workers: str) -> None:
    api = AppsV1Api(kube.client(workers))
    for replicas in (3, 1):
        api.patch_namespaced_deployment_scale("workers", namespace, {"spec": {"replicas": replicas}})
        _wait_for_replicas(kube, namespace, replicas)
        assert (
            len(
                kube.get("pods", f"--namespace={namespace}", "--field-selector=status.phase=Running")["items"]
            )
            >= replicas
        )


@pytest.mark.parametrize(
    "attempt",
    [
        lambda api, core, here: api.patch_namespaced_deployment("workers", here, {"spec": {"replicas": 9}}),
        lambda api, core, here: api.delete_namespaced_deployment("workers", here),
        lambda api, core, here: api.patch_namespaced_deployment_scale(
            "others", here, {"spec": {"replicas": 9}}
        ),
        lambda api, core, here: core.list_namespaced_secret(here),
        lambda api, core, here: core.create_namespaced_pod(here, {"metadata": {"name": "x"}}),
    ],
    ids=["the deployment itself", "delete it", "another's scale", "secrets", "a pod"],
)
def test_whoever_may_scale_may_nothing_else(
    kube: Kube, namespace: str, workers: str, attempt: Callable[[AppsV1Api, CoreV1Api, str], Any]
) -> None:
    client = kube.client(workers)
    with pytest.raises(ApiException) as refused:
        attempt(AppsV1Api(client), CoreV1Api(client), namespace)
    assert refused.value.status == 403


def test_one_of_two_takes_a_lease_over(kube: Kube, namespace: str) -> None:
    api = CoordinationV1Api(kube.client())
    api.create_namespaced_lease(
        namespace, V1Lease(metadata=V1ObjectMeta(name="leader"), spec=V1LeaseSpec(holder_identity="gone"))
    )
    seen = [api.read_namespaced_lease("leader", namespace) for _ in range(2)]
    for lease, candidate in zip(seen, ("first", "second"), strict=True):
        lease.spec = V1LeaseSpec(holder_identity=candidate, renew_time=datetime.now(UTC), lease_transitions=1)
    api.replace_namespaced_lease("leader", namespace, seen[0])
    with pytest.raises(ApiException) as refused:
        api.replace_namespaced_lease("leader", namespace, seen[1])
    assert refused.value.status == 409
    (lease,) = kube.get("leases", f"--namespace={namespace}")["items"]
    assert lease["spec"]["holderIdentity"] == "first"


def test_pods_of_a_drained_node_move(kube: Kube, namespace: str, workers: str) -> None:
    (pod,) = kube.get("pods", f"--namespace={namespace}")["items"]
    node = pod["spec"]["nodeName"]
    kube.kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=60s")
    try:
        _wait_for_replicas(kube, namespace, 1)
        places = {one["spec"]["nodeName"] for one in kube.get("pods", f"--namespace={namespace}")["items"]}
        assert places == {"simulated-0", "simulated-1"} - {node}
    finally:
        kube.kubectl("uncordon", node)


def _deployment(namespace: str) -> dict[str, Any]:
    labels = {"app": "workers"}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "workers", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _may_scale(namespace: str) -> list[dict[str, Any]]:
    rights = "rbac.authorization.k8s.io"
    named = {"metadata": {"name": SCALER, "namespace": namespace}}
    rule = {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": ["workers"],
        "verbs": ["get", "patch"],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", **named},
        {"apiVersion": f"{rights}/v1", "kind": "Role", **named, "rules": [rule]},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "RoleBinding",
            **named,
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": SCALER},
            "subjects": [{"kind": "ServiceAccount", "name": SCALER, "namespace": namespace}],
        },
    ]


def _wait_for_replicas(kube: Kube, namespace: str, count: int) -> None:
    wanted = f"--for=jsonpath={{.status.readyReplicas}}={count}"
    kube.kubectl("wait", wanted, "deployment/workers", f"--namespace={namespace}", "--timeout=60s")
