"""The whole pipeline as pods: `kubectl apply -k k8s/demo` with images made here, and `verify` as a Job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from tests.ground.cluster import Cluster
from tests.ground.engine import Engine
from tests.ground.product import ROOT, images
from tests.k8s.deployed import SPACE, overlay

pytestmark = [pytest.mark.k8s, pytest.mark.timeout(1_500)]


@pytest.fixture(scope="module")
def deployed(
    cluster: Cluster, docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("overlay")
    # Above a test's folder nobody else may look, and the broker and the drivers are other users.
    volumes = Path(tmp_path_factory.mktemp("volumes"))
    for place in (volumes, *volumes.parents[:2]):
        place.chmod(0o755)
    made = images(docker_engine)
    cluster.load_from(docker_engine, *made.values())
    settings = (ROOT / "k8s/base/evenflow.toml").read_text()
    overlay(folder, made, settings=settings, volumes=volumes)
    cluster.kubectl("apply", "--server-side", "--filename", ROOT / "k8s/overlays/local/namespace.yaml")
    cluster.kubectl("apply", "--server-side", "--validate=strict", "--kustomize", folder)
    yield cluster
    cluster.kubectl("delete", "namespace", SPACE, "--wait=false")


def here(cluster: Cluster, *words: str, patience: float = 900) -> str:
    return cluster.kubectl(f"--namespace={SPACE}", *words, patience=patience)


def test_the_results_of_the_pods_are_those_of_a_direct_aggregation(deployed: Cluster) -> None:
    try:
        here(deployed, "wait", "--for=condition=complete", "job/evenflow-verify", "--timeout=840s")
    except ServiceError as error:
        pytest.fail(f"{error}\n{here(deployed, 'get', 'pods')}\n{here(deployed, 'get', 'events')}")
    # It is tried again until there is all to compare: earlier pods of the job have failed.
    done = ("--selector=job-name=evenflow-verify", "--field-selector=status.phase=Succeeded")
    pod = here(deployed, "get", "pods", *done, "--output=name").strip()
    assert here(deployed, "logs", pod).splitlines()[-1] == "0 differences"


def test_executors_are_pods_of_their_drivers_image_and_follow_the_plan(deployed: Cluster) -> None:
    executors = deployed.get("pods", f"--namespace={SPACE}", "--selector=spark-role=executor")["items"]
    assert executors
    driver = deployed.get("deployment/evenflow-combiner", f"--namespace={SPACE}")
    image = driver["spec"]["template"]["spec"]["containers"][0]["image"]
    assert {pod["spec"]["containers"][0]["image"] for pod in executors} == {image}
    assert all(pod["spec"]["securityContext"]["runAsNonRoot"] for pod in executors)


def test_one_of_the_two_controllers_holds_the_lease(deployed: Cluster) -> None:
    lease = deployed.get("lease/evenflow-controller", f"--namespace={SPACE}")
    pods = deployed.get("pods", f"--namespace={SPACE}", "--selector=app.kubernetes.io/component=controller")
    assert any(lease["spec"]["holderIdentity"].startswith(pod["metadata"]["name"]) for pod in pods["items"])
