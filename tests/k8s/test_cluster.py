"""The test cluster itself: pods run, find one another, may what they may; and nothing of it stays."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from spark_consumers.jars.fetch import cache_dir
from tests.ground.containers.bases import PYTHON_BASE, python_base
from tests.ground.containers.building import build
from tests.ground.containers.engine import Engine
from tests.ground.kubernetes.cluster import Cluster
from tests.ground.traces import Holder, traces
from tests.ground.waiting import wait_until
from tests.k8s import pods

pytestmark = pytest.mark.k8s
_PATIENCE = 90

# What its own account may, asked with nothing but Python: the status of each answer.
_ASK = """
import ssl, urllib.error, urllib.request
secrets = "/var/run/secrets/kubernetes.io/serviceaccount/"
context = ssl.create_default_context(cafile=secrets + "ca.crt")
here = open(secrets + "namespace").read()
for what in ("pods", "secrets"):
    request = urllib.request.Request(f"https://kubernetes.default.svc/api/v1/namespaces/{here}/{what}")
    request.add_header("Authorization", "Bearer " + open(secrets + "token").read())
    try:
        print(what, urllib.request.urlopen(request, context=context, timeout=20).status)
    except urllib.error.HTTPError as error:
        print(what, error.code)
"""

# The node learns of a service's pods a moment after they are ready.
_FETCH = """
import time, urllib.request
def fetch(address):
    for _ in range(100):
        try:
            return urllib.request.urlopen(address, timeout=20).status
        except OSError:
            time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def kube(cluster: Cluster) -> Cluster:
    return cluster


class Room:
    """A namespace of the cluster."""

    def __init__(self, kube: Cluster, name: str) -> None:
        self.kube = kube
        self.name = name

    def kubectl(self, *words: str) -> str:
        return self.kube.kubectl(f"--namespace={self.name}", *words)

    def apply(self, *objects: dict[str, Any]) -> None:
        for one in objects:
            one["metadata"]["namespace"] = self.name
        self.kube.apply(*objects)

    def wait(self, what: str, condition: str) -> None:
        self.kubectl("wait", what, f"--for={condition}", f"--timeout={_PATIENCE}s")

    def run(self, code: str, name: str = "once", **more: Any) -> str:
        """What Python code prints in a pod of its own that ends well."""
        self.apply(pods.pod(name, {**pods.spec(code), "restartPolicy": "Never", **more}))
        self.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded")
        return self.kubectl("logs", name)


@pytest.fixture
def room(kube: Cluster, namespace: str) -> Room:
    return Room(kube, namespace)


def test_a_pod_of_the_base_image_becomes_ready(room: Room) -> None:
    room.apply(pods.pod("one", pods.spec("import time; time.sleep(600)")))
    room.wait("pod/one", "condition=Ready")
    assert room.kubectl("exec", "one", "--", "python", "-c", "print(6 * 7)") == "42\n"


def test_a_service_and_each_of_its_pods_have_names(room: Room) -> None:
    room.apply(*pods.server("web", replicas=2))
    room.wait("statefulset/web", "jsonpath={.status.readyReplicas}=2")
    names = ["http://web", "http://web-0.web-each:8080", "http://web-1.web-each:8080"]
    assert room.run(f"{_FETCH}\nfor name in {names}: print(fetch(name))") == "200\n" * 3


def test_a_pod_reaches_nothing_outside(room: Room) -> None:
    code = """
import socket
for target in (("198.51.100.1", 9), ("nowhere.invalid", 80)):
    try:
        socket.create_connection(target, timeout=2)
    except OSError as error:
        print(type(error).__name__)
"""
    assert room.run(code) == "TimeoutError\ngaierror\n"


def test_a_test_reaches_a_pod_and_a_service(room: Room) -> None:
    room.apply(*pods.server("web", replicas=1))
    room.wait("statefulset/web", "jsonpath={.status.readyReplicas}=1")
    at_pod = room.kubectl("get", "pod", "web-0", "--output=jsonpath={.status.podIP}")
    at_service = room.kubectl("get", "service", "web", "--output=jsonpath={.spec.clusterIP}")
    for host, port in ((at_pod, 8080), (at_service, 80)):
        with room.kube.forwarded(host, port) as here:
            wait_until(partial(_answers, here), f"{host}:{port} does not answer")


def test_pods_are_scaled_from_1_to_3_to_1(room: Room) -> None:
    room.apply(*pods.server("web", replicas=1))
    for replicas in (1, 3, 1):
        room.kubectl("scale", "statefulset/web", f"--replicas={replicas}")
        room.wait("statefulset/web", f"jsonpath={{.status.readyReplicas}}={replicas}")
    room.wait("pod/web-2", "delete")
    assert room.kubectl("get", "pods", "--output=name") == "pod/web-0\n"


def test_a_pod_may_what_its_account_may(room: Room) -> None:
    room.kubectl("create", "role", "reader", "--verb=list", "--resource=pods")
    room.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={room.name}:default")
    assert room.run(_ASK) == "pods 200\nsecrets 403\n"


def test_a_pod_that_takes_too_much_memory_is_killed(room: Room) -> None:
    greedy = pods.spec("b'x' * (1 << 28)", resources={"limits": {"memory": "64Mi"}})
    room.apply(pods.pod("greedy", {**greedy, "restartPolicy": "Never"}))
    room.wait("pod/greedy", "jsonpath={.status.phase}=Failed")
    ended = "--output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    assert room.kubectl("get", "pod", "greedy", ended) == "137"


def test_a_container_that_does_not_answer_is_started_again(room: Room) -> None:
    probe = {"exec": {"command": ["test", "-e", "/nothing"]}, "periodSeconds": 1, "failureThreshold": 1}
    room.apply(pods.pod("ill", pods.spec("import time; time.sleep(600)", livenessProbe=probe)))
    room.wait("pod/ill", "jsonpath={.status.containerStatuses[0].restartCount}=1")


def test_an_image_of_the_engine_reaches_the_node(room: Room, docker_engine: Engine, tmp_path: Path) -> None:
    image = "evenflow-test/told:local"
    (tmp_path / "Dockerfile").write_text(f"FROM {PYTHON_BASE}\nENV TOLD=something\n")
    python_base(docker_engine)
    room.kube.load_from(docker_engine, build(docker_engine, tmp_path, image), PYTHON_BASE)
    ask = {**pods.container("import os; print(os.environ['TOLD'])"), "image": image}
    assert room.run("", containers=[ask]) == "something\n"


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment in which the cluster is another one than that of the other tests, with the same
    programs.
    """
    here = tmp_path / "evenflow" / "k8s"
    here.mkdir(parents=True)
    for built in (cache_dir() / "k8s").iterdir():
        if built.is_dir() and not built.name.startswith("node"):
            (here / built.name).symlink_to(built)
    return os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_of_a_cluster_stays(place: dict[str, str], tmp_path: Path, killed: bool) -> None:
    before = traces(tmp_path)
    holder = _hold(place)
    assert traces(tmp_path) != before
    if killed:
        holder.kill()
        holder = _hold(place)  # the next one finds what the killed one left
    holder.let_go()
    assert traces(tmp_path) == before
    assert list(tmp_path.glob("evenflow-*")) == []


def test_two_clusters_live_side_by_side(place: dict[str, str]) -> None:
    first, second = _hold(place), _hold(place)
    assert first.said
    assert second.said
    first.let_go()
    second.let_go()


def _answers(port: int) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20).status == 200)
    except (OSError, HTTPException):
        return False


def _hold(place: Mapping[str, str]) -> Holder:
    return Holder("tests.ground.kubernetes.cluster", "cluster", place)
