"""The test ground by hand: `python -m tests.ground --help`."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum

import typer

from evenflow.errors import EvenflowError
from tests.ground.containers import bases
from tests.ground.containers.engine import engine
from tests.ground.containers.kafka import kafka_image
from tests.ground.kubernetes.cluster import cluster
from tests.ground.kubernetes.definitions import PROMETHEUS_OPERATOR, STRIMZI
from tests.ground.kubernetes.programs import ALL, KUBERNETES, WITHOUT_NODE, GoBuild, go_cache
from tests.ground.machine import ENGINE_PACKAGES, NODE_PACKAGES, locked, need

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


class Suite(StrEnum):
    """What a suite stands on."""

    CONTAINERS = "containers"
    API_SERVER = "api-server"
    K8S = "k8s"


@app.command()
def prepare(suites: list[Suite]) -> None:
    """Install, build and make what suites need, so that their tests only start it."""
    for suite in suites:
        _PREPARED[suite]()


@app.command(name="engine")
def run_engine() -> None:
    """A Docker engine with the base images, until Ctrl-C."""
    with engine() as own:
        kafka_image(own)
        for name, value in own.environment.items():
            print(f"export {name}={value}", flush=True)
        _until_asked_to_end()


@app.command(name="cluster")
def run_cluster() -> None:
    """A Kubernetes cluster with the Python base image, until Ctrl-C."""
    with cluster() as own:
        own.load(bases.python_base_archive(), bases.PYTHON_BASE)
        print(f"export KUBECONFIG={own.kubeconfig}")
        print(f"export PATH={KUBERNETES.folder}:$PATH", flush=True)
        _until_asked_to_end()


def _until_asked_to_end() -> None:
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    signal.sigwait(ends)


def _prepare_containers() -> None:
    with engine() as own:
        kafka_image(own)


def _prepare_k8s() -> None:
    need("a Kubernetes node", NODE_PACKAGES | ENGINE_PACKAGES)
    bases.python_base_archive()
    _build(ALL)


def _prepare_api_server() -> None:
    _build(WITHOUT_NODE)


def _build(builds: Iterable[GoBuild]) -> None:
    with locked(go_cache()):
        for build in builds:
            build.programs()
        for definitions in (PROMETHEUS_OPERATOR, STRIMZI):
            definitions.folder()
        shutil.rmtree(go_cache(), ignore_errors=True)


_PREPARED: dict[Suite, Callable[[], None]] = {
    Suite.CONTAINERS: _prepare_containers,
    Suite.API_SERVER: _prepare_api_server,
    Suite.K8S: _prepare_k8s,
}


def main() -> int:
    """The exit status."""
    try:
        app()
    except EvenflowError as error:
        print(f"{error.message}\n  -> {error.hint}" if error.hint else error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
