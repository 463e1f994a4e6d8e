"""When the input has ended for an instance that is to stop then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from partitioner_service.loop import Loop


def test_before_the_first_assignment_nothing_has_ended_because_the_stint_is_still_to_be_told() -> None:
    loop: Any = object.__new__(Loop)
    loop.parts = SimpleNamespace(source=SimpleNamespace(rebalances=0, states={}))
    assert not loop.all_ended()
