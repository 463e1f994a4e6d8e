"""Objects of Kubernetes that the tests of the cluster make."""

from __future__ import annotations

from typing import Any

from tests.ground.containers.bases import PYTHON_BASE

SERVE = "from http.server import *; HTTPServer(('', 8080), SimpleHTTPRequestHandler).serve_forever()"


def container(code: str, **more: Any) -> dict[str, Any]:
    """One that runs Python code."""
    return {
        "name": "main",
        "image": PYTHON_BASE,
        "imagePullPolicy": "Never",
        "command": ["python", "-uc", code],
        **more,
    }


def spec(code: str, **more: Any) -> dict[str, Any]:
    """Of a pod with that container alone; it ends at once when it is deleted. more: of the container."""
    return {"terminationGracePeriodSeconds": 0, "containers": [container(code, **more)]}


def pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Labelled by its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
    }


def server(name: str, *, replicas: int) -> list[dict[str, Any]]:
    """A StatefulSet of web servers on port 8080, its service of the same name, and a headless one:
    NAME-each.
    """
    labels = {"app": name}
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    template = {"metadata": {"labels": labels}, "spec": spec(SERVE, readinessProbe=ready)}
    wanted = {
        "serviceName": f"{name}-each",
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": wanted},
        _service(name, {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}),
        _service(f"{name}-each", {"clusterIP": "None", "selector": labels, "ports": [{"port": 8080}]}),
    ]


def _service(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
