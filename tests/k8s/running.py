"""A pipeline that runs as pods, as a test sees it: its pods, their metrics, and jobs beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from evenflow.errors import ServiceError
from tests.ground.containers.product import ROOT
from tests.ground.kubernetes.cluster import Cluster
from tests.k8s.deployed import SPACE

_PATIENCE = 240.0
_PAUSE = 1.0


@dataclass(frozen=True)
class Running:
    """images: of the manifests -> of the cluster."""

    cluster: Cluster
    images: Mapping[str, str]

    def kubectl(self, *words: str, patience: float = 900) -> str:
        """In the pipeline's namespace."""
        return self.cluster.kubectl(f"--namespace={SPACE}", *words, patience=patience)

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Those with these labels, the oldest first; a component's name stands for its label."""
        label = selector if "=" in selector else f"app.kubernetes.io/component={selector}"
        result = self.cluster.get(
            "pods", f"--namespace={SPACE}", f"--selector={label}", "--sort-by=.metadata.creationTimestamp"
        )
        return list(result["items"])

    def ready(self, selector: str) -> set[str]:
        """The uids of those that are ready and not being deleted."""
        return {
            pod["metadata"]["uid"]
            for pod in self.pods(selector)
            if "deletionTimestamp" not in pod["metadata"]
            and any(
                each["type"] == "Ready" and each["status"] == "True"
                for each in pod["status"].get("conditions", ())
            )
        }

    def metric(self, component: str, name: str) -> float:
        """The largest value of a gauge over the component's pods that answer; 0 where none does."""
        values = [0.0]
        for pod in self.pods(component):
            path = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}:8080/proxy/metrics/"
            try:
                text = self.kubectl("get", "--raw", path, patience=30)
            except ServiceError:  # it is about to go, or to come
                continue
            values += [
                sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == name
            ]
        return max(values)

    def start_job(self, of: str, name: str, *args: str) -> None:
        """The demo's job `of`, by another name and with other arguments, if there are any."""
        job = yaml.safe_load((ROOT / f"k8s/demo/{of}.yaml").read_text())
        job["metadata"] |= {"name": name, "namespace": SPACE}
        (container,) = job["spec"]["template"]["spec"]["containers"]
        container |= {"image": self.images["evenflow/tools"], "imagePullPolicy": "Never"}
        container["args"] = list(args) or container["args"]
        # Its name has a hash of its content in it.
        (settings,) = [
            each["metadata"]["name"]
            for each in self.cluster.get("configmaps", f"--namespace={SPACE}")["items"]
            if each["metadata"]["name"].startswith("evenflow-settings")
        ]
        for volume in job["spec"]["template"]["spec"]["volumes"]:
            if "configMap" in volume:
                volume["configMap"]["name"] = settings
        self.cluster.apply(job)

    def wait_until(self, holds: Callable[[], bool], what: str, *, seconds: float = _PATIENCE) -> None:
        """Ask every second. Fails the test with what the pods look like and say."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} within {seconds:.0f} s\n{self.told()}")
            time.sleep(_PAUSE)

    def told(self) -> str:
        """The pods, the last events, and the end of each log."""
        parts = [self.kubectl("get", "pods", "--output=wide")]
        parts.append("\n".join(self.kubectl("get", "events", "--sort-by=.lastTimestamp").splitlines()[-30:]))
        for pod in self.pods("app.kubernetes.io/name=evenflow"):
            name = pod["metadata"]["name"]
            try:
                parts.append(f"--- {name}\n{self.kubectl('logs', name, '--tail=12')}")
            except ServiceError as error:
                parts.append(f"--- {name}: {error}")
        return "\n".join(parts)
