"""What `k8s/` holds, on a real API server: it is accepted as it is, and each account may do what it needs
and no more.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiException, AppsV1Api, CoreV1Api

from controller.kubernetes import LeaseElection, ScaledReplicas, leading
from evenflow.errors import ServiceError
from evenflow.host.pods import connected
from evenflow.settings import Settings, load_settings
from spark_consumers.cluster.own_pod import own_pod_conf
from tests.ground.kubernetes.kube import Kube
from tests.ground.waiting import wait_until
from tests.k8s.driver_pods import executor, tried, wait_for_quotas

pytestmark = [pytest.mark.k8s, pytest.mark.more]
ROOT = Path(__file__).parents[2]
SPACE = "evenflow"
PARTITIONER = "evenflow-partitioner"


@pytest.fixture(scope="module")
def kube(api_server: Kube) -> Kube:
    return api_server


@pytest.fixture(scope="module")
def applied(kube: Kube) -> Iterator[Kube]:
    """The overlay for one node, as a user applies it, but strictly."""
    kube.kubectl(
        "apply", "--server-side", "--validate=strict", "-f", ROOT / "k8s/overlays/local/namespace.yaml"
    )
    kube.kubectl("apply", "--server-side", "--validate=strict", "-k", ROOT / "k8s/overlays/local")
    yield kube
    kube.kubectl("delete", "namespace", SPACE, "--wait=false")


def as_account(kube: Kube, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, KUBECONFIG is that of this service account."""
    token = kube.kubectl("create", "token", name, f"--namespace={SPACE}").strip()
    content = json.loads(kube.kubectl("config", "view", "--raw", "--output=json"))
    content["users"] = [{"name": "admin", "user": {"token": token}}]
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", str(file))


def settings(**control: str) -> Settings:
    return load_settings(
        query={"name": "q"},
        input={"partitions": 4},
        control={
            "namespace": SPACE,
            "replicas_of": f"statefulset/{PARTITIONER}",
            "lease": "evenflow-controller",
        }
        | control,
    )


@pytest.mark.parametrize("folder", ["k8s/demo", "k8s/overlays/local"])
def test_all_of_it_is_accepted_without_a_warning(applied: Kube, folder: str) -> None:
    strictly = ("--server-side", "--validate=strict", "--warnings-as-errors", "--dry-run=server")
    applied.kubectl("apply", *strictly, "-k", ROOT / folder)


@pytest.mark.parametrize("folder", ["k8s/demo", "k8s/overlays/local", "k8s/overlays/production"])
def test_no_pod_takes_an_image_of_evenflow_from_docker_hub(kube: Kube, folder: str) -> None:
    images = []
    for one in yaml.safe_load_all(kube.kubectl("kustomize", ROOT / folder)):
        pod = one.get("spec", {}).get("template", {}).get("spec", {})
        images += [(each["image"], each.get("imagePullPolicy")) for each in pod.get("containers", [])]
    ours = [(image, policy) for image, policy in images if "evenflow/" in image]
    assert len(ours) >= 4
    for image, policy in ours:
        assert image.startswith("registry.invalid/evenflow/") or policy == "Never", image


def test_every_container_is_locked_down_and_says_what_it_needs(applied: Kube) -> None:
    for kind in ("deployments", "statefulsets"):
        for one in applied.get(kind, f"--namespace={SPACE}", "--selector=app.kubernetes.io/name=evenflow")[
            "items"
        ]:
            pod = one["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["enableServiceLinks"] is False
            assert pod["terminationGracePeriodSeconds"] >= 30
            for container in pod["containers"]:
                assert container["securityContext"]["readOnlyRootFilesystem"] is True
                assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
                assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
                assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def test_the_controller_sets_the_replicas_of_the_partitioners(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    as_account(applied, "evenflow-controller", tmp_path, monkeypatch)
    caplog.set_level(logging.INFO, "controller")
    replicas = ScaledReplicas(settings())
    for wanted in (3, 1):
        replicas.ask(now=9, target=wanted, reason="a test")
        assert applied.get(f"statefulset/{PARTITIONER}", f"--namespace={SPACE}")["spec"]["replicas"] == wanted
    replicas.ask(now=9, target=1, reason="a test")
    assert caplog.text.count("replicas ") == 2, "what is there already is not asked for"


def test_a_workload_that_it_may_not_scale_is_told_once_and_the_controller_goes_on(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    as_account(applied, "evenflow-controller", tmp_path, monkeypatch)
    replicas = ScaledReplicas(settings(replicas_of="statefulset/kafka"))
    for _ in range(3):
        replicas.ask(now=1, target=2, reason="a test")
    assert caplog.text.count("cannot be set to 2: 403 Forbidden") == 1
    assert applied.get("statefulset/kafka", f"--namespace={SPACE}")["spec"]["replicas"] == 1


def test_the_controller_may_do_nothing_else(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_account(applied, "evenflow-controller", tmp_path, monkeypatch)
    connected("tests")
    apps, core = AppsV1Api(), CoreV1Api()
    for attempt in (
        lambda: apps.delete_namespaced_stateful_set(PARTITIONER, SPACE),
        lambda: apps.patch_namespaced_stateful_set(PARTITIONER, SPACE, {"spec": {"replicas": 9}}),
        lambda: core.list_namespaced_pod(SPACE),
        lambda: core.list_namespaced_secret(SPACE),
    ):
        with pytest.raises(ApiException) as refused:
            attempt()
        assert refused.value.status == 403


def test_a_controller_whose_account_may_not_touch_the_lease_says_so_and_waits(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    as_account(applied, "evenflow-combiner", tmp_path, monkeypatch)
    stop = threading.Event()
    stop.set()
    with leading(settings(), stop) as leads:
        assert not leads()
    assert "the service account may not get leases evenflow-controller, update leases" in caplog.text
    assert "another controller decides" not in caplog.text


def test_a_driver_that_may_not_make_executors_is_refused_before_spark_starts(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, pod = "evenflow-combiner", _any_pod(applied)
    as_account(applied, account, tmp_path, monkeypatch)
    monkeypatch.setattr("spark_consumers.cluster.own_pod.own_namespace", lambda: SPACE)
    monkeypatch.setattr("socket.gethostname", lambda: pod)
    conf = own_pod_conf()
    assert conf["spark.kubernetes.container.image"].startswith("evenflow/")
    assert conf["spark.kubernetes.container.image.pullPolicy"] == "Never"
    refusal = "may not create pods, create configmaps: Spark would get no executors"
    with (
        _less_than("evenflow-driver", applied, verb="create"),
        pytest.raises(ServiceError, match=refusal),
    ):
        own_pod_conf()
    as_account(applied, "evenflow-controller", tmp_path, monkeypatch)
    with pytest.raises(ServiceError, match=r"cannot read its own pod .*: 403 Forbidden"):
        own_pod_conf()


def _any_pod(kube: Kube) -> str:
    """The name of a pod of the pipeline, whether or not anything runs in it."""
    wait_until(lambda: _pods(kube), "no pod of the pipeline is made")
    return str(_pods(kube)[0]["metadata"]["name"])


def _pods(kube: Kube) -> list[dict[str, Any]]:
    result = kube.get("pods", f"--namespace={SPACE}", "--selector=app.kubernetes.io/component=combiner")
    return list(result["items"])


@contextmanager
def _less_than(role: str, kube: Kube, *, verb: str) -> Iterator[None]:
    """Within it, the role lacks that verb everywhere."""
    whole = kube.get(f"role/{role}", f"--namespace={SPACE}")
    rules = [rule | {"verbs": [each for each in rule["verbs"] if each != verb]} for rule in whole["rules"]]
    patch = ("patch", f"role/{role}", f"--namespace={SPACE}", "--type=merge")
    kube.kubectl(*patch, f"--patch={json.dumps({'rules': rules})}")
    try:
        yield
    finally:
        kube.kubectl(*patch, f"--patch={json.dumps({'rules': whole['rules']})}")


@pytest.mark.parametrize("account", ["evenflow-combiner", "evenflow-reducer"])
def test_a_driver_may_make_and_sweep_up_executors_in_its_namespace_only(applied: Kube, account: str) -> None:
    who = f"--as=system:serviceaccount:{SPACE}:{account}"

    def may(verb: str, what: str, space: str = SPACE) -> bool:
        try:
            return applied.kubectl("auth", "can-i", verb, what, f"--namespace={space}", who).strip() == "yes"
        except ServiceError:  # its answer is its exit status, too
            return False

    for verb in ("create", "get", "list", "watch", "delete", "deletecollection"):
        assert may(verb, "pods"), verb
    for what in ("services", "persistentvolumeclaims", "secrets", "statefulsets"):
        assert not may("deletecollection", what), what
        assert not may("delete", what), what
    assert not may("create", "pods", "default")
    assert not may("get", "secrets")
    assert not may("patch", "statefulsets")


@pytest.mark.parametrize("priority", ["system-node-critical", "system-cluster-critical"])
def test_a_driver_may_make_no_pod_with_the_priority_of_the_clusters_own(applied: Kube, priority: str) -> None:
    wait_for_quotas(applied)
    with pytest.raises(ServiceError, match="exceeded quota: evenflow-priority"):
        tried(applied, executor(priorityClassName=priority))


def test_a_driver_may_make_executors_but_not_any_number_of_them(applied: Kube) -> None:
    wait_for_quotas(applied)
    assert tried(applied, executor())["spec"]["priorityClassName"] == "evenflow-executor"
    with pytest.raises(ServiceError, match=r"exceeded quota: evenflow, requested: .*limits\.memory=100Gi"):
        tried(applied, executor(memory="100Gi"))


def test_what_a_pod_states_stays_and_what_it_does_not_state_is_filled_in(applied: Kube) -> None:
    wait_for_quotas(applied)
    stated = executor()
    (container,) = tried(applied, stated)["spec"]["containers"]
    assert container["resources"] == stated["spec"]["containers"][0]["resources"]
    silent = executor()
    del silent["spec"]["containers"][0]["resources"]
    (container,) = tried(applied, silent)["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "0"},
        "limits": {"memory": "512Mi", "ephemeral-storage": "1Gi"},
    }


def test_of_two_controllers_one_leads_and_the_other_one_takes_over_at_once(
    applied: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_account(applied, "evenflow-controller", tmp_path, monkeypatch)
    first, second = (LeaseElection(settings(), identity=name) for name in ("first", "second"))
    began = threading.Event()
    with leading(settings(), threading.Event(), election=first, pause=0.2) as leads:
        assert leads()
        assert not second.holds()
        assert _holder(applied) == "first"
    assert _holder(applied) is None, "given up, not left to end"
    with leading(settings(), began, election=second, pause=0.2) as leads:
        assert leads()
        assert _holder(applied) == "second"


def _holder(kube: Kube) -> str | None:
    lease = kube.get("lease/evenflow-controller", f"--namespace={SPACE}")
    return lease["spec"].get("holderIdentity")
