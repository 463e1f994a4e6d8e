"""What a driver in a pod must tell Spark's scheduler of itself, asked of the API server with the pod's own account.

Executors get the driver's own image: a rollout never runs two versions side by side in one application.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from evenflow.errors import ConfigError, ServiceError

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_ANSWER_SECONDS = 10.0


def in_a_pod() -> bool:
    """Whether this process runs in one."""
    return "KUBERNETES_SERVICE_HOST" in os.environ and _NAMESPACE.exists()


def own_pod_conf() -> dict[str, str]:
    """Namespace, pod and image of this driver as Spark's configuration; nothing outside of a pod.

    Raises ConfigError without the package `kubernetes`, ServiceError when the API server refuses.
    """
    if not in_a_pod():
        return {}
    name, namespace = socket.gethostname(), _NAMESPACE.read_text(encoding="utf-8").strip()
    return {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.container.image": image_of(_read(name, namespace)),
    }


def image_of(pod: Any) -> str:
    """The image of the pod's first container."""
    return str(pod.spec.containers[0].image)


def _read(name: str, namespace: str) -> Any:
    try:
        import kubernetes
    except ImportError:
        raise ConfigError(
            "a driver in a pod needs the package `kubernetes`",
            hint="install evenflow[controller], or take the image of Spark",
        ) from None
    kubernetes.config.load_incluster_config()
    try:
        return kubernetes.client.CoreV1Api().read_namespaced_pod(
            name, namespace, _request_timeout=_ANSWER_SECONDS
        )
    except Exception as error:
        status = getattr(error, "status", None)
        said = f"{status} {error.reason}" if status is not None else str(error)  # type: ignore[attr-defined]
        raise ServiceError(
            f"the driver cannot read its own pod {namespace}/{name}: {said}",
            hint="its service account needs `get` on pods (k8s/base/spark-rbac.yaml)",
        ) from None
