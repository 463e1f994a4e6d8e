"""What a driver in a pod must tell Spark's scheduler of itself, asked of the API server with the pod's own account.

Executors get the driver's own image: a rollout never runs two versions side by side in one application.
"""

from __future__ import annotations

import socket
from typing import Any

from evenflow.errors import ServiceError
from evenflow.pods import ANSWER_SECONDS, Right, connected, missing, own_namespace, said

RIGHTS = (
    *(Right(verb=verb, kind="pods") for verb in ("create", "get", "list", "watch", "patch", "delete")),
    Right(verb="deletecollection", kind="pods"),
    Right(verb="create", kind="configmaps"),
)
"""Without these, Spark would get no executor and wait for ever, or leave some behind."""
_HINT = "bind it to the Role of k8s/base/spark-rbac.yaml"


def own_pod_conf() -> dict[str, str]:
    """Namespace, pod and image of this driver as Spark's configuration. Nothing outside of a pod.

    Raises ConfigError without the package `kubernetes`, ServiceError when the API server refuses, or will refuse.
    """
    namespace = own_namespace()
    if namespace is None:
        return {}
    name, kubernetes = socket.gethostname(), connected("drivers in pods")
    try:
        pod = kubernetes.client.CoreV1Api().read_namespaced_pod(
            name, namespace, _request_timeout=ANSWER_SECONDS
        )
        lacking = missing(RIGHTS, namespace, kubernetes)
    except Exception as error:
        raise ServiceError(
            f"the driver cannot read its own pod {namespace}/{name}: {said(error)}",
            hint=f"its service account needs `get` on pods: {_HINT}",
        ) from None
    if lacking:
        raise ServiceError(
            f"the driver's service account in {namespace} may not {', '.join(lacking)}: Spark would get no executors",
            hint=_HINT,
        )
    return {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.container.image": image_of(pod),
    }


def image_of(pod: Any) -> str:
    """The image of the container `driver`. A service mesh may have put one of its own before it."""
    containers = {one.name: one.image for one in pod.spec.containers}
    return str(containers.get("driver", pod.spec.containers[0].image))
