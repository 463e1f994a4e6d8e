"""The whole pipeline as pods: `kubectl apply -k k8s/overlays/local` with images made here.

Tuples come live while a pod of each kind is deleted and new images are rolled out; then six times as many
come. The tests of this file are one story and run in its order; its end is `verify` as a Job.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.containers.engine import Engine
from tests.ground.containers.product import ROOT, images
from tests.ground.kubernetes.cluster import Cluster
from tests.k8s.deployed import SPACE, overlay
from tests.k8s.running import Running

pytestmark = [pytest.mark.k8s, pytest.mark.timeout(900)]

# A tuple costs the combiner a wait, not this machine's cores: 500 tuples/s are a load of 0.4 for two workers
# that share one executor.
_CHANGES = {
    'window = "60s"': 'window = "20s"',
    'slide = "10s"': 'slide = "5s"',
    "partitions = 4": "partitions = 4\nproducers = 2",
    "buckets = 4": "buckets = 4\ncombine_wait = 800",
    "[control]": "[control]\np_min = 2\np_max = 6\nr_max = 1\nreplicas_min = 2",
}
_BEFORE, _MORE = 500, 2_500
_CALM = 3
_STREAM = "zipf:z=1.4,keys=10000,tuples={},rate={},seed={}"
_KINDS = {
    "partitioner": "partitioner",
    "combiner": "combiner",
    "reducer": "reducer",
    "controller": "controller",
    "executor": "spark-role=executor",
    "broker": "app.kubernetes.io/name=kafka",
}


@pytest.fixture(scope="module")
def pipeline(
    cluster: Cluster, docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("overlay")
    # Above a test's folder nobody else may look, and the broker and the drivers are other users.
    volumes = Path(tmp_path_factory.mktemp("volumes"))
    for place in (volumes, *volumes.parents[:2]):
        place.chmod(0o755)
    made = images(docker_engine)
    cluster.load_from(docker_engine, *made.values())
    overlay(folder, made, settings=_settings(), volumes=volumes)
    cluster.kubectl("apply", "--server-side", "--filename", ROOT / "k8s/overlays/local/namespace.yaml")
    cluster.kubectl("apply", "--server-side", "--validate=strict", "--kustomize", folder)
    yield Running(cluster, made)
    cluster.kubectl("delete", "namespace", SPACE, "--wait=false")


def _settings() -> str:
    text = (ROOT / "k8s/base/evenflow.toml").read_text()
    for old, new in _CHANGES.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _results_reach(pipeline: Running, moment: float, after: str) -> None:
    """Every stage works on tuples of `moment`."""
    pipeline.wait_until(
        lambda: pipeline.metric("reducer", "evenflow_window_end_timestamp_seconds") > moment,
        f"after {after} no window of what came later was emitted",
    )


def test_every_part_becomes_ready_when_there_is_a_stream(pipeline: Running) -> None:
    source = _STREAM.format("endless", _BEFORE, 1)
    pipeline.start_job("replay", "steady", "replay", source, "--live", "--rate", str(_BEFORE), "--no-end")
    for part in ("partitioner", "combiner", "reducer", "controller", "broker"):
        pipeline.wait_until(lambda part=part: bool(pipeline.ready(_KINDS[part])), f"no {part} is ready")
    _results_reach(pipeline, time.time(), "the start")
    # Each of them began before the broker did, and waited.
    for part in ("partitioner", "combiner", "reducer", "controller"):
        for pod in pipeline.pods(part):
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 0, pod["metadata"]["name"]


def test_the_controller_sees_to_the_fewest_partitioners_that_are_asked_for(pipeline: Running) -> None:
    pipeline.wait_until(lambda: len(pipeline.ready("partitioner")) == 2, "there are no two partitioners")


def test_executors_are_pods_of_their_drivers_image(pipeline: Running) -> None:
    executors = pipeline.pods("spark-role=executor")
    assert executors
    assert _images_of(pipeline, "spark-role=executor") == _images_of(pipeline, "combiner")
    assert all(pod["spec"]["securityContext"]["runAsNonRoot"] for pod in executors)


@pytest.mark.parametrize("kind", _KINDS)
def test_windows_go_on_after_a_pod_was_deleted_in_mid_stream(pipeline: Running, kind: str) -> None:
    pipeline.wait_until(lambda: bool(_victim(pipeline, kind)), f"no {kind} is ready")
    before, victim = pipeline.ready(_KINDS[kind]), _victim(pipeline, kind)
    # All but the broker end without a chance to say good-bye.
    pipeline.kubectl("delete", "pod", victim, *(() if kind == "broker" else ("--now",)))
    moment = time.time()
    pipeline.wait_until(
        lambda: len(pipeline.ready(_KINDS[kind]) - before) > 0, f"nobody took the place of {victim}"
    )
    assert not pipeline.ready(_KINDS[kind]) >= before, f"{victim} is still there"
    _results_reach(pipeline, moment, f"{victim} was deleted")


def test_the_controller_that_is_left_takes_the_lease(pipeline: Running) -> None:
    pipeline.wait_until(
        lambda: _leader(pipeline) in {pod["metadata"]["name"] for pod in pipeline.pods("controller")},
        "no living controller holds the lease",
    )


_WORKLOADS = {
    "statefulset/evenflow-partitioner": ("partitioner", "partitioner"),
    "statefulset/evenflow-combiner": ("driver", "spark"),
    "statefulset/evenflow-reducer": ("driver", "spark"),
    "deployment/evenflow-controller": ("controller", "controller"),
}


def test_new_images_are_rolled_out_and_taken_back_in_mid_stream(pipeline: Running) -> None:
    for workload, (container, image) in _WORKLOADS.items():
        now = pipeline.images[f"evenflow/{image}"]
        pipeline.cluster.node.add_name(now, f"{now}-next")
        pipeline.kubectl("set", "image", workload, f"{container}={now}-next")
    for workload in _WORKLOADS:
        pipeline.kubectl("rollout", "status", workload, "--timeout=240s")
    _results_reach(pipeline, time.time(), "the rollout")
    pipeline.wait_until(
        lambda: _images_of(pipeline, "spark-role=executor") == {f"{pipeline.images['evenflow/spark']}-next"},
        "the executors do not have the new image of their drivers",
    )
    for workload in _WORKLOADS:
        pipeline.kubectl("rollout", "undo", workload)
    for workload in _WORKLOADS:
        pipeline.kubectl("rollout", "status", workload, "--timeout=240s")
    _results_reach(pipeline, time.time(), "the rollback")


def test_a_spike_makes_workers_and_executors_and_its_end_takes_them_back(pipeline: Running) -> None:
    # After each restart there was much to catch up with, which is a spike, too.
    pipeline.wait_until(
        lambda: 0 < pipeline.metric("controller", "evenflow_planned_workers") <= _CALM,
        "p did not fall after the restarts",
        seconds=480,
    )
    workers = pipeline.metric("controller", "evenflow_planned_workers")
    executors = len(pipeline.ready("spark-role=executor"))
    source = _STREAM.format(_MORE * 75, _MORE, 2)
    rate = ("--live", "--rate", str(_MORE), "--producer-id", "spike")
    pipeline.start_job("replay", "spike", "replay", source, *rate)
    pipeline.wait_until(
        lambda: pipeline.metric("controller", "evenflow_planned_workers") > workers,
        f"p did not rise above {workers:g}",
    )
    pipeline.wait_until(
        lambda: len(pipeline.ready("spark-role=executor")) > executors, "no executor was made for them"
    )
    high = pipeline.metric("controller", "evenflow_planned_workers")
    pipeline.wait_until(
        lambda: pipeline.metric("controller", "evenflow_planned_workers") < high,
        f"p did not fall below {high:g}",
    )


def test_the_results_are_those_of_a_direct_aggregation(pipeline: Running) -> None:
    pipeline.kubectl("delete", "job", "steady")
    source = _STREAM.format(1_000, _BEFORE, 3)
    pipeline.start_job("replay", "end", "replay", source, "--live", "--producer-id", "steady")
    pipeline.start_job("verify", "verify")
    done = ("--selector=job-name=verify", "--field-selector=status.phase=Succeeded", "--output=name")
    pipeline.wait_until(
        lambda: bool(pipeline.kubectl("get", "pods", *done)), "verify did not succeed", seconds=600
    )
    said = pipeline.kubectl("logs", pipeline.kubectl("get", "pods", *done).strip()).splitlines()
    assert said[-1] == "0 differences"


def _victim(pipeline: Running, kind: str) -> str:
    """The name of a pod of that kind that works; empty where there is none."""
    if kind == "controller":
        return _leader(pipeline)
    ready = pipeline.ready(_KINDS[kind])
    names = [
        pod["metadata"]["name"] for pod in pipeline.pods(_KINDS[kind]) if pod["metadata"]["uid"] in ready
    ]
    return next(iter(names), "")


def _leader(pipeline: Running) -> str:
    """The name of the pod that holds the lease; empty while it changes hands."""
    lease = pipeline.cluster.get("lease/evenflow-controller", f"--namespace={SPACE}")
    names = [pod["metadata"]["name"] for pod in pipeline.pods("controller")]
    holder = str(lease["spec"].get("holderIdentity") or "")
    return next((name for name in names if holder.startswith(name)), "")


def _images_of(pipeline: Running, selector: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pipeline.pods(selector)}
