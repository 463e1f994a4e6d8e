"""A Kubernetes API server as a test sees it: a kubeconfig, kubectl, and Python's client."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config

from evenflow.errors import ServiceError
from tests.ground.kubernetes.programs import KUBERNETES


@dataclass(frozen=True)
class Kube:
    """kubeconfig: reaches the API server as its administrator, from this process's network. program: kubectl,
    None: the one that is built.
    """

    kubeconfig: Path
    program: Path | None = None

    def kubectl(self, *words: str | Path, given: str | None = None, patience: float = 300) -> str:
        """What `kubectl WORDS` prints, with `given` on its standard input. Raises ServiceError with its
        complaint.
        """
        done = subprocess.run(
            [self.program or KUBERNETES.programs()["kubectl"], f"--kubeconfig={self.kubeconfig}", *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=patience,
            env=_without_proxies(),
        )
        if done.returncode != 0:
            raise ServiceError(f"kubectl {' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def get(self, *words: str) -> Any:
        """The object or list that `kubectl get WORDS` gives."""
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def apply(self, *objects: Mapping[str, Any], patience: float = 300) -> str:
        """Apply objects on the server's side, with strict validation."""
        words = ("apply", "--server-side", "--validate=strict", "--filename=-")
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        return self.kubectl(*words, given=json.dumps(listed), patience=patience)

    def client(self, user: str | None = None) -> client.ApiClient:
        """Python's client, as the administrator or as `user`: `system:serviceaccount:NAMESPACE:NAME` is
        one.
        """
        made: client.ApiClient = config.new_client_from_config(str(self.kubeconfig))
        made.configuration.proxy = None
        if user is not None:
            made.set_default_header("Impersonate-User", user)
        return made


def write_kubeconfig(file: Path, *, port: int, authority: Path, token: str) -> None:
    """Of an API server on 127.0.0.1. Nobody else may read the file."""
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as half:  # mode 600
        json.dump(content, half)
    Path(half.name).replace(file)


def _without_proxies() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
