"""Which instances answer for the input partitions, when some instances are heard
and others have fallen silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def responsible_instances(
    newest_first: Iterable[T],
    *,
    partitions: int,
    owned: Callable[[T], int],
    anyway: Callable[[T], bool],
) -> list[T]:
    """The instances that count, in the given order.

    newest_first: all instances. The one with the newest record comes first. partitions: number of input
    partitions. owned: the number of input partitions that an instance said it owns. anyway: whether an
    instance counts whatever it owns.

    An instance that dies does not say so. Other instances take over its input partitions by and by, and their
    records are newer. So an older record counts only if the partitions that its instance owned
    can still be its own: they are no more than the instances with newer records leave over.
    """
    free, instances = partitions, []
    for instance in newest_first:
        if anyway(instance) or 0 < owned(instance) <= free:
            free -= owned(instance)
            instances.append(instance)
    return instances
