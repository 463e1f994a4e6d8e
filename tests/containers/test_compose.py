"""compose.yaml as it is, on images made here. Grafana's image is only to be had from a registry, so it is
left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest

from tests.containers.pipeline import until_written
from tests.ground.containers.engine import Engine
from tests.ground.containers.product import REPOSITORY, ROOT
from tests.ground.containers.prometheus import prometheus_image
from tests.ground.machine import COMPOSE_PACKAGES, need
from tests.ground.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

OURS = ("partitioner", "spark", "controller")
_PATIENCE = 300
_LIVE = "http://127.0.0.1:9721/live/"
_PROMETHEUS = "http://127.0.0.1:9090/api/v1/"


class Composed:
    """The services of compose.yaml under a project name of their own."""

    def __init__(self, engine: Engine, variables: Mapping[str, str]) -> None:
        self.engine = engine
        self.project = f"evenflow-test-{uuid4().hex[:8]}"
        self._environment = os.environ | engine.environment | variables

    def compose(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`docker-compose WORDS`."""
        command = ["docker-compose", "--project-name", self.project, *words]
        return subprocess.run(
            command, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=3 * _PATIENCE
        )

    def state(self, service: str) -> dict[str, Any]:
        """Of the service's container."""
        container = self.compose("ps", "--quiet", service).stdout.strip()
        return dict(json.loads(self.engine.docker("inspect", "--format={{json .State}}", container)))

    def leftovers(self) -> list[str]:
        """Ids of what the engine still has of it."""
        mine = f"--filter=label=com.docker.compose.project={self.project}"
        asked = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
        return [one for words in asked for one in self.engine.docker(*words, "--quiet", mine).split()]


@pytest.fixture(scope="module")
def composed(docker_engine: Engine, product: dict[str, str], kafka_image: str) -> Iterator[Composed]:
    """Kafka, our services and Prometheus."""
    need("compose.yaml", COMPOSE_PACKAGES)
    variables = {
        "IMAGE_PREFIX": REPOSITORY,
        "KAFKA_IMAGE": kafka_image,
        "PROMETHEUS_IMAGE": prometheus_image(docker_engine),
    }
    made = Composed(docker_engine, variables)
    try:
        done = made.compose("up", "--no-build", "--detach", "kafka", *OURS, "prometheus")
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        print(made.compose("logs", "--no-color", "--tail=60").stdout)
        made.compose("--profile", "demo", "down", "--volumes")


def test_a_replayed_stream_is_aggregated_exactly(composed: Composed) -> None:
    sent = composed.compose("--profile", "demo", "run", "--rm", "-T", "replay")
    assert sent.returncode == 0, sent.stderr
    checked = until_written(
        lambda: composed.compose("--profile", "demo", "run", "--rm", "-T", "verify").stdout
    )
    assert checked.rstrip().endswith("\n0 differences"), checked


@pytest.mark.parametrize("service", OURS)
def test_every_service_is_healthy_by_its_own_check(composed: Composed, service: str) -> None:
    wait_until(
        lambda: composed.state(service)["Health"]["Status"] == "healthy",
        f"{service} does not become healthy",
        patience=_PATIENCE,
    )


def test_the_live_page_answers_on_its_published_port(composed: Composed) -> None:
    with urllib.request.urlopen(_LIVE, timeout=30) as answer:
        assert "<html" in answer.read().decode()


def test_prometheus_scrapes_every_service_and_its_rules_hold(composed: Composed) -> None:
    wait_until(
        lambda: _targets() == {f"evenflow-{service}": "up" for service in OURS},
        "not every target is up",
        patience=_PATIENCE,
    )
    wait_until(lambda: _rules() == {"ok"}, "not every rule can be evaluated", patience=_PATIENCE)


def test_services_stop_in_time_with_status_0_and_nothing_of_them_stays(composed: Composed) -> None:
    stopped = composed.compose("stop", *OURS)
    assert stopped.returncode == 0, stopped.stderr
    assert {service: composed.state(service)["ExitCode"] for service in OURS} == dict.fromkeys(OURS, 0)
    composed.compose("--profile", "demo", "down", "--volumes")
    assert composed.leftovers() == []


def _asked(path: str) -> dict[str, Any]:
    with urllib.request.urlopen(_PROMETHEUS + path, timeout=30) as answer:
        return dict(json.load(answer)["data"])


def _targets() -> dict[str, str]:
    return {one["labels"]["job"]: one["health"] for one in _asked("targets")["activeTargets"]}


def _rules() -> set[str]:
    return {rule["health"] for group in _asked("rules")["groups"] for rule in group["rules"]}
