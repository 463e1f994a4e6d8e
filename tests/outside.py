"""Modules and packages that stand outside evenflow, for tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def forgotten(folder: Path) -> Iterator[None]:
    """What is imported from this folder is forgotten at the end."""
    try:
        yield
    finally:
        for name, thing in list(sys.modules.items()):
            if str(getattr(thing, "__file__", None) or "").startswith(f"{folder}/"):
                del sys.modules[name]


def module(folder: Path, name: str, text: str) -> None:
    """A module in this folder."""
    (folder / f"{name}.py").write_text(text)


def package(folder: Path, name: str, group: str, **points: str) -> None:
    """What pip leaves of a package that offers these entry points of this group."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{point} = {value}" for point, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
