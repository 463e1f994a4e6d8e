"""Who answers for the input partitions, where some are heard and others have fallen silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def in_charge(
    newest_first: Iterable[T],
    *,
    partitions: int,
    owned: Callable[[T], int],
    anyway: Callable[[T], bool],
) -> list[T]:
    """Those that count, in that order: each for which `anyway` holds, and each whose partitions nobody newer owns.

    One that has died says nothing of it. Its input partitions belong to others by and by, and what these say is newer, so
    all together own no more than there are. owned: how many one said that it owns, `partitions`: how many there are.
    """
    free, found = partitions, []
    for one in newest_first:
        if anyway(one) or 0 < owned(one) <= free:
            free -= owned(one)
            found.append(one)
    return found
