"""Kubernetes and what it stands on, built from the Go module proxy once and kept by version in the cache.

A build is a folder `k8s/NAME-VERSION` of the cache with one file a program. It appears by one rename; a lock
of its own makes concurrent first uses wait.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir
from tests.ground.machine import locked

KUBERNETES_VERSION = "1.34.4"  # the last minor version whose kubelet runs on cgroup v1
ETCD_VERSION = "3.6.4"
COREDNS_VERSION = "1.14.3"
KWOK_VERSION = "0.7.0"
_PATIENCE = 3600

# Kubernetes replaces these by folders of its own repository; as modules they have versions of their own.
_STAGED = (
    *(
        "api",
        "apiextensions-apiserver",
        "apimachinery",
        "apiserver",
        "cli-runtime",
        "client-go",
        "cloud-provider",
    ),
    *(
        "cluster-bootstrap",
        "code-generator",
        "component-base",
        "component-helpers",
        "controller-manager",
        "cri-api",
    ),
    *(
        "cri-client",
        "csi-translation-lib",
        "dynamic-resource-allocation",
        "endpointslice",
        "externaljwt",
        "kms",
    ),
    *(
        "kube-aggregator",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
        "metrics",
    ),
    *("mount-utils", "pod-security-admission", "sample-apiserver", "sample-cli-plugin", "sample-controller"),
)
_DNS_PLUGINS = ("cache", "errors", "health", "kubernetes", "log", "ready", "reload", "template")


@dataclass(frozen=True)
class GoBuild:
    """Programs of one module. packages: by the program's name; requires: module lines of go.mod."""

    name: str
    version: str
    packages: Mapping[str, str]
    requires: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    language: str = "1.24.0"
    variables: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None

    @property
    def folder(self) -> Path:
        """Where its programs are once built."""
        return cache_dir() / "k8s" / f"{self.name}-{self.version}"

    def programs(self) -> dict[str, Path]:
        """Path of each program, built now if need be. Raises ServiceError without Go or the module proxy."""
        if not self.folder.exists():
            with locked(self.folder):
                if not self.folder.exists():
                    self._build()
        return {name: self.folder / name for name in self.packages}

    def _build(self) -> None:
        begin = time.monotonic()
        print(f"building {self.name} {self.version} (once)", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=f"{self.name}.partial-") as work:
            here = Path(work)
            self._write_module(here)
            # All in one: two of them are compiled and linked at a time.
            packages = self.packages.values()
            self._go("build", *self._flags, "-o", "programs/", *packages, here=here)
            for name, package in self.packages.items():
                made = here / "programs" / _made_as(package, self.name)
                made.rename(made.with_name(name))
            (here / "programs").rename(self.folder)
        print(f"built {self.name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)

    @property
    def _flags(self) -> list[str]:
        linked = " ".join(f"-X {name}={value}" for name, value in self.variables.items())
        return ["-mod=mod", "-buildvcs=false", "-trimpath", "-p", "2", "-ldflags", f"-s -w {linked}"]

    def _write_module(self, folder: Path) -> None:
        lines = [f"module evenflow.test/{self.name}", f"go {self.language}"]
        lines += [f"require {module}" for module in self.requires]
        lines += [f"replace {module}" for module in self.replaces]
        (folder / "go.mod").write_text("\n".join(lines) + "\n")
        if self.source is not None:
            (folder / "main.go").write_text(self.source)

    def _go(self, *words: str, here: Path) -> None:
        go(*words, folder=here, what=f"{self.name} {self.version}", language=self.language)


def _made_as(package: str, module: str) -> str:
    """What `go build` calls the program of a package: its last name that is no version."""
    names = [name for name in package.split("/") if not re.fullmatch(r"v\d+", name)]
    return module if package == "." else names[-1]


def go(*words: str, folder: Path, what: str, language: str = "1.24.0") -> str:
    """What `go WORDS` prints in `folder`. what: is being made. Raises ServiceError without Go or the
    module proxy.
    """
    program = shutil.which("go")
    if program is None:
        raise ServiceError(
            f"{what} must be built, and there is no Go",
            hint=f"install Go {language} or later, with its `go` on the PATH",
        )
    caches = {"GOCACHE": str(go_cache() / "build"), "GOMODCACHE": str(go_cache() / "modules")}
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-modcacherw"} | caches
    done = subprocess.run(
        [program, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=_PATIENCE
    )
    if done.returncode != 0:
        raise ServiceError(
            f"{what} cannot be built:\n{(done.stderr or done.stdout)[-2000:]}",
            hint=(
                "the first build needs Go 1.21 or later, which fetches the version that it must have, and a"
                " network that reaches a Go module proxy (GOPROXY)"
            ),
        )
    return done.stdout


def go_cache() -> Path:
    """What Go fetches and compiles on the way, several GB: builds share it, and nobody needs it
    afterwards.
    """
    return cache_dir() / "k8s" / "go"


def _kubernetes(name: str, version: str, *programs: str) -> GoBuild:
    staged = "0." + version.removeprefix("1.")
    facts = {
        "gitVersion": f"v{version}",
        "gitMajor": "1",
        "gitMinor": version.split(".")[1],
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return GoBuild(
        name=name,
        version=version,
        packages={program: f"k8s.io/kubernetes/cmd/{program}" for program in programs},
        requires=(f"k8s.io/kubernetes v{version}",),
        replaces=tuple(f"k8s.io/{name} => k8s.io/{name} v{staged}" for name in _STAGED),
        variables={
            f"{package}.{fact}": value
            for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
            for fact, value in facts.items()
        },
    )


def _coredns_source() -> str:
    plugins = "".join(f'\t_ "github.com/coredns/coredns/plugin/{name}"\n' for name in _DNS_PLUGINS)
    return (
        f'package main\n\nimport (\n{plugins}\t"github.com/coredns/coredns/coremain"\n)\n\n'
        "func main() { coremain.Run() }\n"
    )


_PAUSE_SOURCE = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
}
"""

KUBERNETES = _kubernetes(
    "kubernetes",
    KUBERNETES_VERSION,
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
)
KUBERNETES_NODE = _kubernetes("kubernetes-node", KUBERNETES_VERSION, "kubelet", "kube-proxy")
ETCD = GoBuild(
    name="etcd",
    version=ETCD_VERSION,
    packages={"etcd": "go.etcd.io/etcd/server/v3"},
    requires=(f"go.etcd.io/etcd/server/v3 v{ETCD_VERSION}",),
)
COREDNS = GoBuild(
    name="coredns",
    version=COREDNS_VERSION,
    packages={"coredns": "."},
    requires=(f"github.com/coredns/coredns v{COREDNS_VERSION}",),
    language="1.25.0",
    source=_coredns_source(),
)
KWOK = GoBuild(
    name="kwok",
    version=KWOK_VERSION,
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    requires=(f"sigs.k8s.io/kwok v{KWOK_VERSION}",),
    variables={"sigs.k8s.io/kwok/pkg/consts.Version": f"v{KWOK_VERSION}"},
)
PAUSE = GoBuild(name="pause", version="1", packages={"pause": "."}, source=_PAUSE_SOURCE)
WITHOUT_NODE = (ETCD, KUBERNETES)
ALL = (*WITHOUT_NODE, KUBERNETES_NODE, KWOK, PAUSE, COREDNS)
