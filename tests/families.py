"""Families: tests whose cases are so much alike that `make test` runs a share of them, and `make test-long`
all.

A test belongs to one by the mark `family` (`pytest.mark.family` at it or at its file). Of each such test of
the share `EVENFLOW_FAMILIES` (1 by default: all) at least one case runs. `EVENFLOW_PART` says which: with a
share of 0.25 the parts 0 to 3 together are all cases. Which part a case is in depends on its name alone, so a
run can be repeated, and so that the cases of one partitioner fall into all parts.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import pytest


def outside(families: Mapping[Hashable, Sequence[str]], share: float, part: int = 0) -> set[str]:
    """The cases that do not run. families: what its cases have in common -> their names."""
    if not 0 < share <= 1:
        raise pytest.UsageError(f"EVENFLOW_FAMILIES is a share above 0 and up to 1, not {share}")
    parts = round(1 / share)
    left: set[str] = set()
    for cases in families.values():
        # Sorted by a hash: in their order neighbours are alike, and a step through them would meet some kinds
        # alone.
        drawn = sorted(cases, key=lambda name: (zlib.crc32(name.encode()), name))
        chosen = drawn[part % min(parts, len(drawn)) :: parts]
        left.update(set(drawn).difference(chosen))
    return left


def families(items: Sequence[pytest.Item]) -> dict[Hashable, list[str]]:
    """The names of all cases with the mark, by the test whose cases they are."""
    members: dict[Hashable, list[str]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("family") is not None:
            members[item.nodeid.partition("[")[0]].append(item.nodeid)
    return members
