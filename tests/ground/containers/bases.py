"""Base images made on this machine, for builds that would otherwise start from a registry's.

`python_base` is Debian's minimal system with its Python, made by debootstrap and kept in the cache by what it
is made of. `java_base` adds Debian's Java 17 runtime, in a layer of its own.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir, java_command
from tests.ground.containers.archive import identity, write_image
from tests.ground.containers.building import build
from tests.ground.containers.engine import Engine
from tests.ground.machine import IMAGE_PACKAGES, locked, need

PYTHON_BASE = "evenflow-test/python-base:local"
JAVA_BASE = "evenflow-test/java-base:local"
_RELEASE = "bookworm"
_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_NOT_NEEDED = (
    "var/cache/apt/archives/*.deb",
    "var/lib/apt/lists/*",
    "usr/share/doc/*",
    "usr/share/locale/*",
    "usr/share/man/*/*",
)
_PATIENCE = 1800
_RECIPE = 1  # raise it when what is made below changes


def python_base_archive() -> Path:
    """The archive of `PYTHON_BASE`, made now if need be. Raises ServiceError without root or Debian's
    packages.
    """
    archive = cache_dir() / "images" / f"python-base-{_key()}.tar"
    if not archive.exists():
        need("a base image made here", IMAGE_PACKAGES)
        with locked(archive):
            if not archive.exists():
                _make(archive)
    return archive


def python_base(engine: Engine) -> str:
    """Load `PYTHON_BASE` into the engine; returns its name."""
    return load(engine, python_base_archive(), PYTHON_BASE)


def java_base(engine: Engine) -> str:
    """Build `JAVA_BASE` on `PYTHON_BASE`; returns its name."""
    recipe = Path(__file__).parents[1] / "images" / "java" / "Dockerfile"
    trusted = Path(java_command()).resolve().parent.parent / "lib" / "security" / "cacerts"
    with tempfile.TemporaryDirectory(prefix="java-base-") as name:
        # Java has a store of authorities of its own, and Debian's would know nothing of this machine's.
        shutil.copyfile(trusted, Path(name) / "cacerts")
        arguments = {"BASE": python_base(engine)}
        return build(engine, Path(name), JAVA_BASE, dockerfile=recipe, arguments=arguments)


def load(engine: Engine, archive: Path, image: str) -> str:
    """Load an archive that holds `image`, unless the engine has just that one; returns the image's name."""
    present = engine.docker("image", "ls", "--quiet", "--no-trunc", image)
    if present != f"sha256:{identity(archive)}":
        engine.docker("load", "--input", archive)
    return image


def _key() -> str:
    """Of all that the base is made of: another list of packages, or other authorities, make another base."""
    parts = [_RELEASE, *_PACKAGES, str(_RECIPE)]
    digest = hashlib.sha256(" ".join(parts).encode())
    digest.update(_AUTHORITIES.read_bytes() if _AUTHORITIES.exists() else b"")
    return digest.hexdigest()[:12]


def _make(archive: Path) -> None:
    begin = time.monotonic()
    print("making the Python base image (once)", file=sys.stderr, flush=True)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="partial-") as work:
        root = Path(work) / "root"
        _debootstrap(root)
        for pattern in _NOT_NEEDED:
            for file in root.glob(pattern):
                shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
        (root / "usr/bin/python").symlink_to("python3")
        if _AUTHORITIES.exists():  # a network that is looked into has authorities of its own
            shutil.copyfile(_AUTHORITIES, root / _AUTHORITIES.relative_to("/"))
        write_image(archive, PYTHON_BASE, lambda layer: layer.add(root, arcname="."), command=["python3"])
    print(f"made it in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def _debootstrap(root: Path) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _RELEASE, str(root)]
    command += _mirror()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    if done.returncode != 0:
        raise ServiceError(
            f"debootstrap failed:\n{done.stdout[-2000:]}{done.stderr[-1000:]}",
            hint="does `apt-get update` work on this machine?",
        )


def _mirror() -> list[str]:
    """The place that this machine's own apt takes the release from; nothing where it has none: debootstrap
    knows one.
    """
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    done = subprocess.run([*command, f"Codename: {_RELEASE}"], capture_output=True, text=True)
    return done.stdout.split()[:1]
