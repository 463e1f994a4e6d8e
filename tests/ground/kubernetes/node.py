"""A real node in namespaces of its own: containerd, kubelet and kube-proxy, whose pods run on this machine.

The node has a network of its own. Its pods reach one another and the services in there, and nothing outside.
Images come from archives; what was loaded once stays in the cache.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from evenflow.errors import ServiceError
from tests.ground.kubernetes.programs import KUBERNETES_NODE, PAUSE
from tests.ground.sandbox import Sandbox, make_cgroups, remove_cgroups
from workbench.local.processes import ChildProcess

NODE_NAME = "node"
NODE_ADDRESS = "10.99.0.1"
DNS_ADDRESS = "10.96.0.10"
PAUSE_IMAGE = f"evenflow-test/pause:{PAUSE.version}"
_POD_NETWORK = "10.245.0.0/24"
_PATIENCE = 60.0
_LONG_PATIENCE = 900.0

# What kubelet and the network plugins write in fixed places stays in the node's own mounts. The address of
# the bridge is the node's; the default route leads to nobody, so what is for no service and no pod is lost.
_SETUP = """
mkdir -p /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers
for place in /run /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers; do mount -t tmpfs tmpfs $place; done
ip link set lo up
ip link add node0 type bridge
ip addr add {address}/24 dev node0
ip link set node0 up
ip route add default via 10.99.0.254
echo 1 > /proc/sys/net/ipv4/ip_forward
"""


class Node:
    """folder: for this run. store: containerd's images, kept from run to run; no other node uses it now."""

    def __init__(self, folder: Path, store: Path) -> None:
        self._folder = folder
        self._store = store
        self._cgroup = f"evenflow-node-{hashlib.sha256(str(store).encode()).hexdigest()[:8]}"
        remove_cgroups(self._cgroup)
        make_cgroups(self._cgroup)
        self.sandbox = Sandbox(["tini", "--", "sleep", "infinity"], log=self._log("sandbox"), network=True)
        try:
            self._inside("sh", "-ec", _SETUP.format(address=NODE_ADDRESS))
        except BaseException:
            self.end()
            raise

    def start(self, name: str, command: Sequence[str]) -> ChildProcess:
        """Run a command in the node, for as long as the node lives."""
        return ChildProcess(self.sandbox.inside(command), log=self._log(name), name=name)

    def end(self) -> None:
        """Everything in the node is killed; nothing of it but the images stays."""
        self.sandbox.end()
        remove_cgroups(self._cgroup)

    def start_containers(self) -> None:
        """Start containerd with nothing left of an earlier run."""
        self._write_container_settings()
        containerd = self._start_containerd()
        if self._swept():
            containerd.kill()
            self._start_containerd()

    def _swept(self) -> bool:
        """Whether there was something to take away: containers, and second names that would keep replaced
        images.
        """
        containers = self._ctr("containers", "ls", "--quiet").split()
        images = [name for name in self._ctr("images", "ls", "--quiet").split() if name.startswith("sha256:")]
        for what, names in (("containers", containers), ("images", images)):
            if names:
                self._ctr(what, "rm", *names)
        return bool(containers or images)

    def start_node(self, kubeconfig: Path) -> None:
        """Start kubelet and kube-proxy; the API server has a node when they have reached it."""
        self.kubelet = self.start("kubelet", self._kubelet_command(kubeconfig))
        self.start("kube-proxy", self._proxy_command(kubeconfig))

    def load(self, archive: IO[bytes], images: Mapping[str, str]) -> None:
        """Load an archive. images: what it holds, by name, as ids without `sha256:`."""
        self._ctr("images", "import", "-", given=archive)
        (self._store / "loaded.json").write_text(json.dumps(self._loaded() | dict(images), indent=1))

    def add_name(self, image: str, also: str) -> None:
        """Give an image that is there a second name."""
        self._ctr("images", "tag", "--force", f"docker.io/{image}", f"docker.io/{also}")

    def has(self, images: Mapping[str, str]) -> bool:
        """Whether just these images were loaded, in this run or an earlier one, and are still there.

        kubelet takes images away where the disk is full, also those that cannot come back.
        """
        there = set(self._ctr("images", "ls", "--quiet").split())
        return images.items() <= self._loaded().items() and {f"docker.io/{name}" for name in images} <= there

    def _inside(self, *command: str, given: IO[bytes] | None = None) -> str:
        done = subprocess.run(
            self.sandbox.inside(command),
            stdin=given or subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONG_PATIENCE,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"{command[0]} failed in the node: {done.stderr.decode(errors='replace')[-2000:]}"
            )
        return done.stdout.decode()

    def _ctr(self, *words: str, given: IO[bytes] | None = None) -> str:
        return self._inside("ctr", "--namespace=k8s.io", *words, given=given)

    def _log(self, name: str) -> Path:
        return self._folder / "log" / f"{name}.log"

    def _loaded(self) -> dict[str, str]:
        try:
            return dict(json.loads((self._store / "loaded.json").read_text()))
        except (OSError, ValueError):
            return {}

    def _start_containerd(self) -> ChildProcess:
        containerd = self.start("containerd", ["containerd", f"--config={self._folder / 'containerd.toml'}"])
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._ctr("version")
                return containerd
            except ServiceError:
                if not containerd.alive or time.monotonic() >= deadline:
                    raise ServiceError(f"containerd does not start:\n{containerd.tail()}") from None
            time.sleep(0.05)

    def _write_container_settings(self) -> None:
        networks = self._folder / "cni"
        networks.mkdir()
        routed = {
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "dataDir": str(self._folder / "cni-addresses"),
                "ranges": [[{"subnet": _POD_NETWORK}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [routed]}
        (networks / "10-pods.conflist").write_text(json.dumps(network))
        (self._folder / "containerd.toml").write_text(
            _containerd_settings(self._store / "containerd", networks)
        )

    def _kubelet_command(self, kubeconfig: Path) -> list[str]:
        settings = self._folder / "kubelet.json"
        settings.write_text(json.dumps(_KUBELET | {"cgroupRoot": f"/{self._cgroup}"}))
        return [
            str(KUBERNETES_NODE.programs()["kubelet"]),
            f"--config={settings}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={NODE_ADDRESS}",
            f"--cert-dir={self._folder / 'kubelet'}",
        ]

    def _proxy_command(self, kubeconfig: Path) -> list[str]:
        return [
            str(KUBERNETES_NODE.programs()["kube-proxy"]),
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={_POD_NETWORK}",
            # The machine's own table of connections stays as it is.
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]


_KUBELET: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "clusterDNS": [DNS_ADDRESS],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "failCgroupV1": False,
    "failSwapOn": False,
    "resolvConf": "",
    "serializeImagePulls": False,
    # A machine that is nearly full is the user's affair, and images that are gone would not come back.
    "imageGCHighThresholdPercent": 100,
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
}


def _containerd_settings(root: Path, networks: Path) -> str:
    return f"""
version = 2
root = "{root}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
