"""What a process in a Kubernetes pod knows about itself, and what its account may do there.

The package `kubernetes` comes with evenflow[controller]. It is imported only when a function needs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenflow.errors import ConfigError

ANSWER_SECONDS = 5.0
"""Seconds that the API server may take for an answer."""
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace() -> str | None:
    """The namespace of this process's pod. None outside a pod, and in a pod without a service account."""
    return _NAMESPACE.read_text(encoding="utf-8").strip() if _NAMESPACE.exists() else None


def connected(users: str) -> Any:
    """The package `kubernetes`, configured for the API server by the pod's service account,
    or else by $KUBECONFIG.

    users: who needs it, in the plural, for the message. ConfigError if the package or such a configuration is
    missing.
    """
    try:
        import kubernetes
    except ImportError:
        raise ConfigError(
            f"{users} need the package `kubernetes`",
            hint="install evenflow[controller], or take the image of the controller or of Spark",
        ) from None
    try:
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            kubernetes.config.load_incluster_config()
        else:
            # The file is passed, because the package itself reads the variable only once, when it is
            # imported.
            kubernetes.config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))
    except kubernetes.config.ConfigException as error:
        raise ConfigError(
            f"{users} need a Kubernetes API server: {error}",
            hint="run in a pod with a service account, set KUBECONFIG, or leave out what asks for it",
        ) from None
    return kubernetes


@dataclass(frozen=True, kw_only=True)
class Right:
    """The right to do something to objects of a kind."""

    verb: str
    """What may be done, such as `patch`."""
    kind: str
    """Kind of the objects, such as `statefulsets/scale`."""
    group: str = ""
    """API group of the kind, such as `apps`."""
    name: str = ""
    """Name of the one object, empty for all."""

    def __str__(self) -> str:
        return f"{self.verb} {self.kind}{' ' + self.name if self.name else ''}"


def missing(rights: Iterable[Right], namespace: str, kubernetes: Any) -> list[str]:
    """The rights that this process's account lacks in the namespace, in words.

    kubernetes: the package, from `connected`. Its exceptions are passed on.
    """
    api = kubernetes.client.AuthorizationV1Api()
    return [str(right) for right in rights if not _has(right, namespace, api)]


def _has(right: Right, namespace: str, api: Any) -> bool:
    kind, _, part = right.kind.partition("/")
    attributes = {"namespace": namespace, "verb": right.verb, "group": right.group, "resource": kind}
    attributes |= {"subresource": part, "name": right.name}
    review = {"spec": {"resourceAttributes": attributes}}
    answer = api.create_self_subject_access_review(review, _request_timeout=ANSWER_SECONDS)
    return bool(answer.status.allowed)


def reason_of(error: Exception) -> str:
    """The answer of the API server that this error holds, in one line."""
    status, reason = getattr(error, "status", None), getattr(error, "reason", None)
    if status is not None:
        return f"{status} {reason}"
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
