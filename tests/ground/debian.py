"""Debian's packages, installed by the target that needs them: `python -m tests.ground.debian PACKAGE ...`.

Without root it says what to install. The product installs nothing: it takes programs from the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

from evenflow.errors import ServiceError

_OPTIONS = ["-o", "DPkg::Lock::Timeout=300", "-y", "-qq", "--no-install-recommends"]
_PATIENCE = 600


def install(packages: Mapping[str, str]) -> None:
    """Install the packages whose programs are missing. packages: name of a package -> one of its programs.

    Raises ServiceError if a package cannot be installed.
    """
    missing = {package: program for package, program in packages.items() if shutil.which(program) is None}
    if not missing:
        return
    command = ["apt-get", "install", *_OPTIONS, *missing]
    trouble: str | None = "you are not root"
    if os.geteuid() == 0:
        trouble = _trouble(["apt-get", "update", "-qq"]) or _trouble(command)
    for package, program in missing.items():
        if trouble is not None or shutil.which(program) is None:
            raise ServiceError(
                f"{program} is needed, and Debian's package {package} is not installed: "
                f"{trouble or 'it brings no such program'}",
                hint=f"as root: apt-get update, then {' '.join(command)}",
            )


def _trouble(command: list[str]) -> str | None:
    """What went wrong with a command, None if nothing did."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"{command[0]} failed")[-500:]


def main() -> int:
    """Install the packages that the command line names, each with a program of its name. Returns the exit
    status.
    """
    try:
        install({package: package for package in sys.argv[1:]})
    except ServiceError as error:
        print(f"{error.message}\n  -> {error.hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
