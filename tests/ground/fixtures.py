"""Fixtures of the suites that stand on this ground; a conftest imports those that it wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testcontainers.core.config import ConnectionMode, testcontainers_config

from tests.ground.containers import bases, kafka
from tests.ground.containers.engine import Engine, engine
from tests.ground.containers.product import product_images
from tests.ground.kubernetes import api_server as api_servers
from tests.ground.kubernetes import cluster as clusters
from tests.ground.kubernetes.cluster import Cluster
from tests.ground.kubernetes.kube import Kube

__all__ = ["api_server", "cluster", "docker_engine", "java_base", "kafka_image", "product", "python_base"]


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """A Docker engine, which docker's and testcontainers' clients of this process find, too."""
    with engine() as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        # Its reaper is an image of a registry, and what a test starts ends with the engine.
        patch.setattr(testcontainers_config, "_ryuk_disabled", True)
        # On a machine that is a container itself it would look for ports at the bridge's address.
        patch.setattr(testcontainers_config, "connection_mode_override", ConnectionMode.docker_host)
        patch.setattr(testcontainers_config, "tc_host_override", "127.0.0.1")
        patch.setattr(testcontainers_config, "sleep_time", 0.1)
        patch.setattr(testcontainers_config, "max_tries", 1200)
        yield running


@pytest.fixture(scope="session")
def python_base(docker_engine: Engine) -> str:
    """Name of the image with Debian's Python."""
    return bases.python_base(docker_engine)


@pytest.fixture(scope="session")
def java_base(docker_engine: Engine) -> str:
    """Name of the image with Debian's Python and Java 17."""
    return bases.java_base(docker_engine)


@pytest.fixture(scope="session")
def kafka_image(docker_engine: Engine) -> str:
    """Name of the image that KafkaContainer takes."""
    return kafka.kafka_image(docker_engine)


@pytest.fixture(scope="module")
def api_server() -> Iterator[Kube]:
    """An API server without a node: its pods are made, and wait for a place."""
    with api_servers.api_server() as kube:
        yield kube


@pytest.fixture(scope="module")
def simulated() -> Iterator[Kube]:
    """An API server with two simulated nodes, whose pods are Ready and do nothing."""
    with api_servers.api_server(nodes=2) as kube:
        yield kube


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with a real node, which has the image `bases.PYTHON_BASE`."""
    with clusters.cluster() as kube:
        kube.load(bases.python_base_archive(), bases.PYTHON_BASE)
        yield kube


@pytest.fixture(scope="session")
def product(docker_engine: Engine) -> dict[str, str]:
    """Names of the product's images, by target of its Dockerfile."""
    return product_images(docker_engine)
