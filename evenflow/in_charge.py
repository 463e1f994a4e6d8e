"""Which instances answer for the input partitions, when some instances are heard and others have fallen silent."""

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
    """The instances that count, in the given order.

    newest_first: the instances, that with the newest record first. partitions: number of input partitions.
    owned: how many of these an instance said that it owns. anyway: whether an instance counts in any case.

    An instance that dies does not say so. Other instances take over its input partitions by and by, and their
    records are newer. So an instance also counts if the partitions that it owned can still be its own:
    together with those of the newer instances that count, they must be no more than there are.
    """
    free, found = partitions, []
    for one in newest_first:
        if anyway(one) or 0 < owned(one) <= free:
            free -= owned(one)
            found.append(one)
    return found
