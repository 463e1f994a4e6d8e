"""A control plane without a node, on loopback: for manifests, permissions and controllers. It needs no root.

With `nodes` kwok plays that many nodes: their pods are scheduled and become Ready, and nothing of them runs.

Without nodes it may be an API server that is there already, to which the kubeconfig in `EXISTING` leads.
It has a name of its own, so that nobody's KUBECONFIG gives a cluster at work to tests, which make and remove
the namespaces of the manifests.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.ground.kubernetes.control_plane import ControlPlane, Ports
from tests.ground.kubernetes.kube import Kube, write_kubeconfig
from tests.ground.kubernetes.programs import KWOK
from tests.ground.machine import temporary_folder
from tests.ground.waiting import wait_until
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

EXISTING = "EVENFLOW_TEST_KUBECONFIG"
"""Environment variable with the kubeconfig of a cluster that is for tests alone."""
_PLAYED = "kwok.x-k8s.io/node"


@contextmanager
def api_server(*, nodes: int = 0, environment: Mapping[str, str] = os.environ) -> Iterator[Kube]:
    """A fresh API server with its controllers and scheduler, gone when the block ends; or the one in
    `EXISTING`, unless `nodes` are asked for. Raises ServiceError if that one does not answer.
    """
    named = environment.get(EXISTING)
    if named is not None and not nodes:
        kubectl = shutil.which("kubectl")
        existing = Kube(Path(named), None if kubectl is None else Path(kubectl))
        existing.get("namespaces")
        yield existing
        return
    with temporary_folder("evenflow-api-") as folder, ExitStack() as ends:

        def start(part: str, command: Sequence[str]) -> ChildProcess:
            return ChildProcess(command, log=folder / "log" / f"{part}.log", name=part)

        ports = Ports.free()
        plane = ControlPlane(folder, start, ports=ports)
        ends.callback(plane.end)
        plane.start(ports.api)
        kube = kube_of(plane, folder, ports.api)
        if nodes:
            ends.callback(start("kwok", _kwok(plane)).kill)
            kube.apply(*(_node(number) for number in range(nodes)))
            kube.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        yield kube


def kube_of(plane: ControlPlane, folder: Path, port: int) -> Kube:
    """The control plane as tests see it, in whose default namespace pods can be made."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, port=port, authority=plane.authority, token=plane.token)
    kube = Kube(kubeconfig)
    wait_until(lambda: kube.get("serviceaccounts")["items"], "the default service account is not made")
    return kube


def _kwok(plane: ControlPlane) -> list[str]:
    return [
        str(KWOK.programs()["kwok"]),
        f"--kubeconfig={plane.kubeconfig}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={_PLAYED}=fake",
        "--node-ip=127.0.0.1",
        "--cidr=10.244.0.0/16",
        f"--server-address=127.0.0.1:{free_ports(1)[0]}",
    ]


def _node(number: int) -> dict[str, Any]:
    name = f"simulated-{number}"
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {_PLAYED: "fake"}, "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }
