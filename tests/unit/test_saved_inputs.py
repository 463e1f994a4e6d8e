"""What fuzzing has found and saved is replayed: once mended, it stays mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import saved, try_input

SAVED = list(saved())


@pytest.mark.parametrize(("target", "file"), SAVED, ids=[f"{target}/{file.name}" for target, file in SAVED])
def test_a_saved_input_is_read_or_refused(target: str, file: Path) -> None:
    try_input(target, file.read_bytes())
