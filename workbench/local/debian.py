"""Programs of Debian packages: on the path, unpacked into the cache, or installed.

`program` is for packages whose programs need no other packages, such as Prometheus. `apt-get download` and `dpkg -x` are
then enough: they need no root, and start no service. `python -m workbench.local.debian PACKAGE [PROGRAM]` installs a package
that needs others, such as Chromium. Without root it says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir

_PATIENCE = 300


def program(name: str, *, package: str) -> Path:
    """Path of the program. Raises ServiceError if the program is not there and cannot be downloaded."""
    path = shutil.which(name)
    if path is not None:
        return Path(path)
    unpacked = cache_dir() / "debian" / package
    if not unpacked.exists():
        _unpack(package, unpacked)
    for folder in ("usr/bin", "usr/sbin", "bin"):
        if (unpacked / folder / name).exists():
            return unpacked / folder / name
    raise ServiceError(f"Debian's package {package} has no program {name}", hint=f"install {name} by hand")


def _unpack(package: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside `folder`, as a rename needs the same file system. The rename makes a half unpacked package impossible.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="partial-") as name:
        work_folder = Path(name)
        if _run(["apt-get", "download", "-qq", package], work_folder) is not None and os.geteuid() == 0:
            _run(["apt-get", "update", "-qq"], work_folder)  # a fresh machine has no package lists
            _run(["apt-get", "download", "-qq", package], work_folder)
        files = list(work_folder.glob("*.deb"))
        trouble = (
            _run(["dpkg", "-x", files[0].name, "unpacked"], work_folder)
            if files
            else "it cannot be downloaded"
        )
        if trouble is not None:
            raise ServiceError(
                f"Debian's package {package} is needed: {trouble}",
                hint=f"as root: apt-get update, then apt-get install --no-install-recommends {package}",
            )
        try:
            os.replace(work_folder / "unpacked", folder)
        except OSError:
            if not folder.exists():  # another process was first
                raise


def _run(command: list[str], folder: Path) -> str | None:
    """Run a command in a folder. Returns None, or what went wrong."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"{command[0]} failed")[-500:]


def install(packages: Mapping[str, str]) -> None:
    """Install the packages whose programs are missing. packages: name of a package -> one of its programs.

    Raises ServiceError if a package cannot be installed.
    """
    missing = {package: name for package, name in packages.items() if shutil.which(name) is None}
    if not missing:
        return
    options = ["-o", "DPkg::Lock::Timeout=300", "-y", "-qq", "--no-install-recommends"]
    command = ["apt-get", "install", *options, *missing]
    trouble: str | None = "you are not root"
    if os.geteuid() == 0:
        folder = Path.cwd()
        trouble = _run(["apt-get", "update", "-qq"], folder) or _run(command, folder)
    for package, name in missing.items():
        if trouble is not None or shutil.which(name) is None:
            raise ServiceError(
                f"{name} is needed, and Debian's package {package} is not installed: "
                f"{trouble or 'it brings no such program'}",
                hint=f"as root: apt-get update, then {' '.join(command)}",
            )


def main() -> int:
    """Install the package that the command line names. Returns the exit status."""
    package = sys.argv[1]
    try:
        install({package: sys.argv[2] if len(sys.argv) > 2 else package})
    except ServiceError as error:
        print(f"{error.message}\n  -> {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
