"""What a driver in a pod must tell Spark's scheduler about itself.

The driver asks the API server with the pod's own service account. Executors get the driver's own image. So a
rollout never runs two versions side by side in one application.
"""

from __future__ import annotations

import socket
from typing import Any

from evenflow.errors import ServiceError
from evenflow.host.pods import ANSWER_SECONDS, Right, connected, missing, own_namespace, reason_of

RIGHTS = (
    *(Right(verb=verb, kind="pods") for verb in ("create", "get", "list", "watch", "patch", "delete")),
    Right(verb="deletecollection", kind="pods"),
    Right(verb="create", kind="configmaps"),
)
"""The rights that Spark needs.

Without them, Spark would wait for executors for ever, or leave some behind.
"""
_HINT = "bind it to the Role of k8s/base/spark-rbac.yaml"


def own_pod_conf() -> dict[str, str]:
    """Namespace, pod and image of this driver as Spark's configuration. Empty outside of a pod.

    Raises ConfigError without the package `kubernetes`. Raises ServiceError if the API server refuses to
    answer, or if the account lacks a right that Spark will need.
    """
    namespace = own_namespace()
    if namespace is None:
        return {}
    # In a pod, the host name is the pod's name.
    name, kubernetes = socket.gethostname(), connected("drivers in pods")
    try:
        pod = kubernetes.client.CoreV1Api().read_namespaced_pod(
            name, namespace, _request_timeout=ANSWER_SECONDS
        )
        lacking = missing(RIGHTS, namespace, kubernetes)
    except Exception as error:  # refusals, time-outs and broken answers all have classes of their own
        raise ServiceError(
            f"the driver cannot read its own pod {namespace}/{name}: {reason_of(error)}",
            hint=f"its service account needs `get` on pods: {_HINT}",
        ) from None
    if lacking:
        raise ServiceError(
            f"the driver's service account in {namespace} may not"
            f" {', '.join(lacking)}: Spark would get no executors",
            hint=_HINT,
        )
    driver = driver_container(pod)
    return {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.container.image": driver.image,
        # Where a driver's image is never pulled, its executors' is not either. Who names another image in
        # spark.conf names its policy, too.
        "spark.kubernetes.container.image.pullPolicy": driver.image_pull_policy,
        # The driver's Service and claim are not Spark's: without these two it would ask to delete what has
        # its label.
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    }


def driver_container(pod: Any) -> Any:
    """The container `driver`, else the first container.

    The driver need not come first: a service mesh may have put a container of its own before it.
    """
    containers = {container.name: container for container in pod.spec.containers}
    return containers.get("driver", pod.spec.containers[0])
