"""Images of one layer, written as the archives that `docker load` and `ctr images import` take."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CREATED = "1970-01-01T00:00:00Z"


def write_image(
    archive: Path,
    name: str,
    fill: Callable[[tarfile.TarFile], None],
    *,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Write an image called `name` with the layer that `fill` fills; the archive appears by one rename."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="partial-") as work:
        layer = Path(work) / "layer.tar"
        with tarfile.open(layer, "w") as content:
            fill(content)
        variables = {"PATH": _PATH, **(environment or {})}
        config = _config(_digest(layer), command, [f"{key}={value}" for key, value in variables.items()])
        half = Path(work) / "image.tar"
        with tarfile.open(half, "w") as image:
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
            _add_bytes(image, config_name, config)
            _add_bytes(image, "manifest.json", json.dumps(manifest).encode())
            image.add(layer, arcname="layer.tar")
        half.rename(archive)


def image_of_program(archive: Path, name: str, program: Path) -> None:
    """An image with nothing but a program that needs no libraries, at `/NAME_OF_THE_PROGRAM`."""
    at = f"/{program.name}"
    write_image(archive, name, lambda layer: layer.add(program, arcname=at), command=[at])


def identity(archive: Path) -> str:
    """The id of the archive's only image, without `sha256:`."""
    with tarfile.open(archive) as content:
        manifest = content.extractfile("manifest.json")
        assert manifest is not None
        return Path(json.load(manifest)[0]["Config"]).stem


def _config(layer: str, command: Sequence[str], environment: Sequence[str]) -> bytes:
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": _CREATED,
            "config": {"Cmd": list(command), "Env": list(environment)},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
            "history": [{"created": _CREATED, "created_by": "evenflow's test ground"}],
        }
    ).encode()


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
