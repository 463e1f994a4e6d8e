"""When the input has ended for an instance that is to stop then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from partitioner_service.loop import Loop
from partitioner_service.session import Stint

ENDED: Any = SimpleNamespace(ended=True)


def ended(*, share_known: bool, own: dict[int, Any], stint: Stint) -> bool:
    """Whether all has ended for an instance, where every partition has ended and this is committed."""
    loop: Any = object.__new__(Loop)
    source = SimpleNamespace(share_known=share_known, states=own, taken=2, added=frozenset())
    source.look = source.check = lambda *_: None
    loop.parts = SimpleNamespace(
        source=source,
        router=SimpleNamespace(session=SimpleNamespace(stint=stint)),
        sink=SimpleNamespace(open_for=None),
        pace=SimpleNamespace(everyone=lambda: {0: ENDED, 1: ENDED}),
    )
    return bool(loop.all_ended())


def test_before_an_assignment_nothing_has_ended_because_the_stint_is_still_to_be_told() -> None:
    assert not ended(share_known=False, own={}, stint=Stint.DUE)


def test_a_stint_that_was_not_told_has_not_ended() -> None:
    assert not ended(share_known=True, own={0: ENDED}, stint=Stint.DUE)


@pytest.mark.parametrize("own", [{}, {0: ENDED}])
def test_an_instance_has_ended_with_its_stint_told_or_without_a_partition(own: dict[int, Any]) -> None:
    assert ended(share_known=True, own=own, stint=Stint.COMMITTED if own else Stint.DUE)
