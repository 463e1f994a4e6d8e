"""What an image runs while it is built, so that its services find compiled kernels."""

from __future__ import annotations

import pytest

from evenflow.partitioners.registry import names, tells
from partitioner_service.precompile import compile_all


@pytest.mark.long
def test_every_partitioner_of_the_service_and_every_reader_is_run_once() -> None:
    readers = 8
    several = sum(map(tells, names()))
    assert compile_all() == 3_000 * (len(names()) + several + readers) * 2
