"""Pods that a driver's account may or may not make, tried on an API server and not kept."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.ground.containers.product import ROOT
from tests.ground.kubernetes.kube import Kube
from tests.ground.waiting import wait_until
from tests.k8s.deployed import SPACE


def executor(*, memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    """A pod as Spark's scheduler makes one of the template. spec: other fields of it, None: without one."""
    pod: dict[str, Any] = yaml.safe_load((ROOT / "k8s/base/executor.yaml").read_text())
    pod["metadata"] |= {"name": "tried", "namespace": SPACE}
    pod["spec"] = {name: value for name, value in (pod["spec"] | spec).items() if value is not None}
    (container,) = pod["spec"]["containers"]
    container["image"] = "evenflow/spark:0.1.0"
    container["resources"]["requests"] |= {"cpu": "150m", "memory": memory}
    container["resources"]["limits"]["memory"] = memory
    return pod


def tried(kube: Kube, pod: dict[str, Any]) -> dict[str, Any]:
    """What a driver's account would make of it; it is not kept. Raises ServiceError if it is refused."""
    who = f"--as=system:serviceaccount:{SPACE}:evenflow-combiner"
    words = ("create", "--dry-run=server", "--output=json", "--filename=-", who)
    made: dict[str, Any] = json.loads(kube.kubectl(*words, given=json.dumps(pod)))
    return made


def wait_for_quotas(kube: Kube) -> None:
    """A quota counts once its controller has looked at it, and a pod needs its account."""
    wait_until(
        lambda: all(
            "hard" in one.get("status", {})
            for one in kube.get("resourcequotas", f"--namespace={SPACE}")["items"]
        ),
        "a quota has no status",
    )
    wait_until(
        lambda: any(
            one["metadata"]["name"] == "default"
            for one in kube.get("serviceaccounts", f"--namespace={SPACE}")["items"]
        ),
        "the default service account is not made",
    )
