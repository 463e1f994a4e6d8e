"""An API server, and a cluster with real pods, each for the whole run; and a namespace for each test."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.ground.fixtures import api_server, cluster, docker_engine, simulated
from tests.ground.kubernetes.kube import Kube

__all__ = ["api_server", "cluster", "docker_engine", "simulated"]


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    """A namespace of the module's `kube`."""
    name = f"test-{uuid4().hex[:8]}"
    kube.kubectl("create", "namespace", name)
    yield name
    kube.kubectl("delete", "namespace", name, "--wait=false")
