"""Who answers for the input partitions: whoever is heard, and the silent ones that nobody has taken over."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from evenflow.reporting.responsible_instances import responsible_instances


class One(NamedTuple):
    name: str
    owned: int
    heard: bool


def names(*newest_first: One, partitions: int = 4) -> str:
    result = responsible_instances(
        newest_first, partitions=partitions, owned=lambda one: one.owned, anyway=lambda one: one.heard
    )
    return "".join(one.name for one in result)


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ([One("a", 2, True), One("b", 2, False)], "ab"),
        ([One("a", 4, True), One("b", 4, False)], "a"),
        ([One("a", 3, True), One("b", 2, False), One("c", 1, False)], "ac"),
        ([One("a", 0, True), One("b", 0, False)], "a"),
        ([One("a", 4, True), One("b", 4, True), One("c", 1, False)], "ab"),
        ([], ""),
    ],
    ids=[
        "silent with partitions of its own",
        "taken over",
        "taken over in part",
        "silent and in reserve",
        "one that has just died is still heard",
        "nobody",
    ],
)
def test_a_silent_instance_counts_for_as_long_as_nobody_has_its_partitions(
    instances: list[One], expected: str
) -> None:
    assert names(*instances) == expected
