"""A whole Kubernetes cluster of one node on this machine, with real pods and DNS."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir
from tests.ground.containers.archive import identity, image_of_program
from tests.ground.containers.engine import Engine
from tests.ground.kubernetes.api_server import kube_of
from tests.ground.kubernetes.control_plane import ControlPlane, Ports
from tests.ground.kubernetes.kube import Kube
from tests.ground.kubernetes.node import DNS_ADDRESS, NODE_ADDRESS, NODE_NAME, PAUSE_IMAGE, Node
from tests.ground.kubernetes.programs import COREDNS, PAUSE, GoBuild
from tests.ground.kubernetes.reach import forwarded
from tests.ground.machine import NODE_PACKAGES, need, temporary_folder
from tests.ground.waiting import wait_until

_DNS_IMAGE = f"evenflow-test/coredns:{COREDNS.version}"
_DNS = Path(__file__).parents[1] / "manifests" / "dns.yaml"


@dataclass(frozen=True)
class Cluster(Kube):
    """`Kube` with a node under it."""

    node: Node = field(kw_only=True)

    def load(self, archive: Path, image: str) -> None:
        """Give the node an image from an archive of that one image, unless it has just that one."""
        this = {image: identity(archive)}
        if not self.node.has(this):
            with archive.open("rb") as content:
                self.node.load(content, this)

    def load_from(self, engine: Engine, *images: str) -> None:
        """Give the node images of the engine, less those that it has. A layer that several share comes
        once.
        """
        missing = [name for name, one in engine.identities(*images).items() if not self.node.has({name: one})]
        if missing:
            with engine.saved(*missing) as archive:
                self.node.load(archive, engine.identities(*missing))

    def forwarded(self, host: str, port: int) -> AbstractContextManager[int]:
        """A port on 127.0.0.1 that stands for `host:port` of the cluster: a pod's address, or a service's."""
        return forwarded(self.node.sandbox.pid, host, port)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A fresh cluster with DNS, gone when the block ends."""
    need("a Kubernetes node", NODE_PACKAGES)
    with ExitStack() as ends:
        store = ends.enter_context(_store())
        folder = ends.enter_context(temporary_folder("evenflow-node-"))
        node = Node(folder, store)
        ends.callback(node.end)
        ports = Ports()
        plane = ControlPlane(folder, node.start, ports=ports, node=NODE_ADDRESS)
        port = ends.enter_context(forwarded(node.sandbox.pid, "127.0.0.1", ports.api))
        node.start_containers()
        plane.start(port)
        made = Cluster(kube_of(plane, folder, port).kubeconfig, node=node)
        for build, image in ((PAUSE, PAUSE_IMAGE), (COREDNS, _DNS_IMAGE)):
            made.load(_program_image(build, image), image)
        node.start_node(plane.kubeconfig)
        try:
            _wait_for_the_node(made)
        except ServiceError as error:
            raise ServiceError(f"{error.message}; the end of kubelet's log:\n{node.kubelet.tail()}") from None
        yield made


def _wait_for_the_node(made: Cluster) -> None:
    """Until it takes pods and names resolve."""
    manifest = _DNS.read_text().replace("IMAGE", _DNS_IMAGE).replace("ADDRESS", DNS_ADDRESS)
    made.kubectl("apply", "--server-side", "--filename=-", given=manifest)
    wait_until(lambda: made.get("nodes")["items"], "the node does not register")
    made.kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=60s")
    made.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")


def _program_image(build: GoBuild, image: str) -> Path:
    """The archive of an image that holds the build's only program."""
    archive = build.folder / "image.tar"
    if not archive.exists():
        (program,) = build.programs().values()
        image_of_program(archive, image, program)
    return archive


@contextmanager
def _store() -> Iterator[Path]:
    """Where containerd keeps its images: the first of the cache's stores that no other cluster uses."""
    for number in count(1):
        store = cache_dir() / "k8s" / f"node-{number}"
        store.mkdir(parents=True, exist_ok=True)
        with (store / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield store
            return
