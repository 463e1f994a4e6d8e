"""The Prometheus Operator's resource definitions, fetched from the Go module proxy once and kept by version in the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars import cache_dir
from tests.ground.machine import locked

VERSION = "0.85.0"
_MODULE = f"github.com/prometheus-operator/prometheus-operator@v{VERSION}"
_INSIDE = "example/prometheus-operator-crd"


def definitions(*plurals: str) -> list[Path]:
    """The files of these resources. Raises ServiceError without Go or the module proxy."""
    folder = cache_dir() / "k8s" / f"prometheus-operator-{VERSION}"
    if not folder.exists():
        with locked(folder):
            if not folder.exists():
                _fetch(folder)
    return [folder / f"monitoring.coreos.com_{plural}.yaml" for plural in plurals]


def _fetch(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise ServiceError("there is no Go", hint="install Go, with its `go` on the PATH")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.partial-") as work:
        done = subprocess.run(
            [go, "mod", "download", "-json", _MODULE],
            cwd=work,
            env=os.environ | {"GOWORK": "off", "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"{_MODULE} cannot be fetched: {done.stdout[-500:]}{done.stderr[-500:]}",
                hint="the first use needs a network that reaches a Go module proxy (GOPROXY)",
            )
        made = Path(shutil.copytree(Path(json.loads(done.stdout)["Dir"]) / _INSIDE, Path(work) / "made"))
        made.chmod(0o755)
        made.rename(folder)
