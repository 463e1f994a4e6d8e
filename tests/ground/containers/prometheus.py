"""A Prometheus image made on this machine from Debian's program."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.ground.containers.bases import python_base
from tests.ground.containers.building import build
from tests.ground.containers.engine import Engine
from tests.ground.machine import PROMETHEUS_PACKAGES, need

PROMETHEUS = "evenflow-test/prometheus:local"


def prometheus_image(engine: Engine) -> str:
    """Build `PROMETHEUS`, from cached layers where there are some; returns its name."""
    need("an image of Prometheus", PROMETHEUS_PACKAGES)
    program = shutil.which("prometheus")
    assert program is not None, "need() has seen to it"
    recipe = Path(__file__).parents[1] / "images" / "prometheus" / "Dockerfile"
    with tempfile.TemporaryDirectory(prefix="evenflow-prometheus-image-") as work:
        shutil.copy2(program, work)
        arguments = {"BASE": python_base(engine)}
        return build(engine, Path(work), PROMETHEUS, dockerfile=recipe, arguments=arguments)
