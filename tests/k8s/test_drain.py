"""A node is drained: on simulated nodes, whose pods are Ready and do nothing, with the manifests as a user
applies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from tests.ground.containers.product import ROOT
from tests.ground.kubernetes.api_server import api_server
from tests.ground.kubernetes.kube import Kube
from tests.ground.waiting import wait_until
from tests.k8s.deployed import CLAIMS, SPACE, volume

pytestmark = pytest.mark.k8s
HERE = f"--namespace={SPACE}"


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Two nodes, the pipeline on them with two partitioners, all of it Ready."""
    volumes: Path = tmp_path_factory.mktemp("volumes")
    with api_server(nodes=2) as made:
        made.apply(*(volume(claim, volumes) for claim in CLAIMS))
        made.kubectl("apply", "--server-side", "-f", ROOT / "k8s/overlays/local/namespace.yaml")
        made.kubectl("apply", "--server-side", "-k", ROOT / "k8s/overlays/local")
        made.kubectl("scale", HERE, "statefulset/evenflow-partitioner", "--replicas=2")
        wait_until(lambda: _ready(made) == _WANTED, f"{_WANTED} are not ready")
        yield made


_WANTED = {
    "evenflow-partitioner": 2,
    "evenflow-combiner": 1,
    "evenflow-reducer": 1,
    "evenflow-controller": 2,
}


def _ready(kube: Kube) -> dict[str, int]:
    """How many pods of each workload of the pipeline are ready."""
    result = kube.get("deployments,statefulsets", HERE, "--selector=app.kubernetes.io/name=evenflow")["items"]
    return {one["metadata"]["name"]: one["status"].get("readyReplicas", 0) for one in result}


def _nodes(kube: Kube, component: str) -> list[str]:
    """Where the living pods of a component are."""
    result = kube.get("pods", HERE, f"--selector=app.kubernetes.io/component={component}")["items"]
    return sorted(pod["spec"]["nodeName"] for pod in result if "deletionTimestamp" not in pod["metadata"])


def test_two_of_a_kind_stand_on_two_nodes(kube: Kube) -> None:
    for component in ("partitioner", "controller"):
        assert _nodes(kube, component) == ["simulated-0", "simulated-1"], component


def test_a_drained_node_is_left_one_at_a_time_and_all_of_the_pipeline_stands_on_the_other_one(
    kube: Kube,
) -> None:
    budgets = kube.get("poddisruptionbudgets", HERE)["items"]
    assert {one["metadata"]["name"]: one["status"]["disruptionsAllowed"] for one in budgets} == {
        "evenflow-controller": 1,
        "evenflow-partitioner": 1,
    }
    kube.kubectl("drain", "simulated-0", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    wait_until(lambda: _ready(kube) == _WANTED, f"{_WANTED} are not ready again")
    for component in ("partitioner", "combiner", "reducer", "controller"):
        assert set(_nodes(kube, component)) == {"simulated-1"}, component


def test_a_second_node_is_not_left_by_the_last_ones_that_there_are(kube: Kube) -> None:
    """Both nodes are cordoned now: who is evicted finds no place, so the other one of its kind stays."""
    with pytest.raises(ServiceError, match=r"global timeout reached|disruption budget"):
        kube.kubectl("drain", "simulated-1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10s")
    for name in ("evenflow-partitioner", "evenflow-controller"):
        wait_until(lambda name=name: _ready(kube)[name] == 1, f"the last {name} does not stay")
