"""`docker build` on this machine: with its network, proxies and pip configuration, none of which enters the
image.

A Dockerfile that runs pip mounts the secret `pip.conf`, which it may do whether or not somebody gives one:
`RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf pip install ...`
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.ground.containers.engine import Engine

_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# Where packages are, and how to reach them. The rest, such as folders of this machine, has no meaning in a
# build.
_PIP = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


def build(
    engine: Engine,
    folder: Path,
    image: str,
    *,
    dockerfile: Path | None = None,
    target: str | None = None,
    arguments: Mapping[str, str] | None = None,
) -> str:
    """Build `folder` into an image and return its name. dockerfile: by default the folder's own.

    Raises ServiceError with the end of what the build printed.
    """
    words: list[str | Path] = ["build", "--network=host", "--progress=plain", f"--tag={image}"]
    words += [f"--file={dockerfile}"] if dockerfile is not None else []
    words += [f"--target={target}"] if target is not None else []
    words += [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    words += [f"--build-arg={name}" for name in _PROXIES if name in os.environ]
    with tempfile.NamedTemporaryFile("w", prefix="pip.conf-") as secret:
        secret.write(_pip_configuration())
        secret.flush()
        engine.docker(*words, f"--secret=id=pip.conf,src={secret.name}", folder)
    return image


def _pip_configuration() -> str:
    """This machine's, from its files and its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    result: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in _PIP:
            result[key] = value.strip("'\"")
    return "[global]\n" + "".join(f"{key} = {value}\n" for key, value in result.items())
