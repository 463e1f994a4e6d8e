"""When the input has ended for an instance that is to stop then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from partitioner_service.plane.loop import Loop
from partitioner_service.routing.session import Stint

ENDED: Any = SimpleNamespace(ended=True)
BOTH = {0: ENDED, 1: ENDED}


def ended(
    *, share_known: bool = True, own: dict[int, Any], stint: Stint, committed: dict[int, Any] = BOTH
) -> bool:
    """Whether all has ended for an instance that knows of two partitions, which have ended.

    committed: the states of all partitions that are taken in, as a look at them shows.
    """
    loop: Any = object.__new__(Loop)
    source = SimpleNamespace(share_known=share_known, states=own, partition_count=2, added=frozenset())

    def look() -> dict[int, Any]:
        source.partition_count = len(committed)
        return committed

    source.look, source.check = look, lambda *_: None
    loop.parts = SimpleNamespace(
        source=source,
        router=SimpleNamespace(session=SimpleNamespace(stint=stint)),
        gate=SimpleNamespace(holds=False),
        sink=SimpleNamespace(open_for=None),
        pace=SimpleNamespace(everyone=lambda: BOTH),
    )
    return bool(loop.all_ended())


def test_before_an_assignment_nothing_has_ended_because_the_stint_is_still_to_be_told() -> None:
    assert not ended(share_known=False, own={}, stint=Stint.DUE)


def test_a_stint_that_was_not_told_has_not_ended() -> None:
    assert not ended(share_known=True, own={0: ENDED}, stint=Stint.DUE)


@pytest.mark.parametrize("own", [{}, {0: ENDED}])
def test_an_instance_has_ended_with_its_stint_told_or_without_a_partition(own: dict[int, Any]) -> None:
    assert ended(share_known=True, own=own, stint=Stint.COMMITTED if own else Stint.DUE)


def test_a_partition_that_a_peer_has_taken_in_meanwhile_has_not_ended_yet() -> None:
    open_still: Any = SimpleNamespace(ended=False)
    assert not ended(own={0: ENDED}, stint=Stint.COMMITTED, committed={**BOTH, 2: open_still})
    assert ended(own={0: ENDED}, stint=Stint.COMMITTED, committed={**BOTH, 2: ENDED})
