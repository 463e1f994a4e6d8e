"""What is fuzzed: every decoder of `test_hostile_bytes.py`. A new decoder there is a new target here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.unit.test_hostile_bytes import DECODERS, taken

CORPUS = Path(__file__).parent / "corpus"
"""Saved inputs, a folder for each target. The tests replay all of them."""


def folder_name(target: str) -> str:
    """The name of a target as that of its folder."""
    return "".join(char if char.isalnum() else "-" for char in target)


def try_input(target: str, data: bytes) -> None:
    """Hand these bytes to the decoder. Raises what the decoder must not raise."""
    taken(DECODERS[target], data)


def saved() -> Iterator[tuple[str, Path]]:
    """(target, file) of each saved input."""
    for target in DECODERS:
        for file in sorted((CORPUS / folder_name(target)).glob("*")):
            yield target, file
