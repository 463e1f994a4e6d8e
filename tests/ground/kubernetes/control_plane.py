"""etcd, the API server, the controllers and the scheduler of Kubernetes, started one after another."""

from __future__ import annotations

import secrets
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import trustme

from evenflow.errors import ServiceError
from tests.ground.kubernetes.kube import write_kubeconfig
from tests.ground.kubernetes.programs import ETCD, KUBERNETES
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

SERVICE_NETWORK = "10.96.0.0/16"
API_ADDRESS = "10.96.0.1"  # of the service `kubernetes`: the network's first
_PATIENCE = 60.0

Start = Callable[[str, Sequence[str]], ChildProcess]


@dataclass(frozen=True)
class Ports:
    """Where each part listens."""

    etcd: int = 2379
    etcd_peers: int = 2380
    api: int = 6443
    controllers: int = 10257
    scheduler: int = 10259

    @classmethod
    def free(cls) -> Self:
        """For a control plane on the machine's own network."""
        return cls(*free_ports(len(fields(cls))))


class ControlPlane:
    """start: runs a command under a name. node: the address that pods reach, if there are pods.

    `kubeconfig` is for the parts; it holds the API server's own port.
    """

    def __init__(self, folder: Path, start: Start, *, ports: Ports, node: str | None = None) -> None:
        self._folder = folder
        self._start = start
        self._ports = ports
        self._node = node
        self._parts: list[ChildProcess] = []
        self.token = secrets.token_hex(16)
        self.authority = folder / "authority.pem"
        self.kubeconfig = folder / "kubeconfig-of-parts"

    def start(self, port: int) -> None:
        """Start all parts; port: where this process reaches the API server, which answers when this
        returns.
        """
        self._write_secrets()
        write_kubeconfig(self.kubeconfig, port=self._ports.api, authority=self.authority, token=self.token)
        self._run("etcd", self._etcd())
        self._run("kube-apiserver", self._api_server())
        self._wait_for_the_api(port)
        self._run("kube-controller-manager", self._controllers())
        self._run("kube-scheduler", self._scheduler())

    def end(self) -> None:
        """In the opposite order."""
        while self._parts:
            self._parts.pop().kill()  # what they would write on their way out is thrown away

    def _run(self, name: str, command: Sequence[str]) -> None:
        self._parts.append(self._start(name, command))

    def _write_secrets(self) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        names = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "localhost",
            "127.0.0.1",
            API_ADDRESS,
        ]
        server = authority.issue_cert(*names, *([self._node] if self._node else []))
        server.private_key_pem.write_to_path(self._folder / "server.key")
        server.cert_chain_pems[0].write_to_path(self._folder / "server.pem")
        accounts = authority.issue_cert("service-accounts")
        accounts.private_key_pem.write_to_path(self._folder / "accounts.key")
        tokens = self._folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')

    def _wait_for_the_api(self, port: int) -> None:
        server = self._parts[-1]
        context = ssl.create_default_context(cafile=str(self.authority))
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
        )
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                opener.open(f"https://127.0.0.1:{port}/readyz", timeout=5).close()
                return
            except OSError as error:
                if not server.alive or time.monotonic() >= deadline:
                    raise ServiceError(
                        f"the API server does not answer ({error}); the end of {server.log}:\n{server.tail()}"
                    ) from None
            time.sleep(0.05)

    def _etcd(self) -> list[str]:
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self._ports.etcd, self._ports.etcd_peers))
        return [
            str(ETCD.programs()["etcd"]),
            f"--data-dir={self._folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def _api_server(self) -> list[str]:
        if self._node is None:
            reached = ["--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"]
        else:
            reached = [
                "--bind-address=0.0.0.0",
                "--endpoint-reconciler-type=lease",
                f"--advertise-address={self._node}",
            ]
        return [
            str(KUBERNETES.programs()["kube-apiserver"]),
            f"--etcd-servers=http://127.0.0.1:{self._ports.etcd}",
            f"--secure-port={self._ports.api}",
            f"--tls-cert-file={self._folder / 'server.pem'}",
            f"--tls-private-key-file={self._folder / 'server.key'}",
            f"--cert-dir={self._folder / 'api'}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--authorization-mode=Node,RBAC",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._folder / 'accounts.key'}",
            f"--service-account-signing-key-file={self._folder / 'accounts.key'}",
            "--allow-privileged=true",
            "--profiling=false",
            "--kubelet-preferred-address-types=InternalIP",
            *reached,
        ]

    def _controllers(self) -> list[str]:
        return [
            str(KUBERNETES.programs()["kube-controller-manager"]),
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports.controllers}",
            f"--cert-dir={self._folder / 'controllers'}",
            f"--service-account-private-key-file={self._folder / 'accounts.key'}",
            f"--root-ca-file={self.authority}",
        ]

    def _scheduler(self) -> list[str]:
        return [
            str(KUBERNETES.programs()["kube-scheduler"]),
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports.scheduler}",
            f"--cert-dir={self._folder / 'scheduler'}",
        ]
