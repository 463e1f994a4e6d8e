"""Blobs are merged in the order of (routed partition, offsets, part), whatever order they come in.

Rule "blobs count once" and rule "merge order is fixed".
"""

from __future__ import annotations

import struct
from itertools import permutations

from evenflow.twostep import reduce
from tests.unit.twostep.pipe import (
    EVERYTHING,
    INPUTS,
    INVERTIBLE,
    ROUTED,
    Dict,
    Pipe,
    plan_of,
)


def test_blobs_of_one_routed_partition_may_arrive_backwards() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    blobs = []
    for number in range(3):
        pipe.write(0, [(number, b"a", 2**number, None)], {0: 0})
        blobs += pipe.combine()[0]
    pipe.reduce([blobs[::-1]])
    pipe.end()
    assert [row["s"] for row in pipe.results().values()] == [1, 2, 4]


def test_float_sums_are_the_same_bits_in_every_order_of_arrival() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1, tasks=((0,), (1,), (2,)))
    for routed, value in enumerate([0.1, 1e16, -1e16]):
        pipe.write(routed, [(0, b"a", 1, value)], dict.fromkeys(range(INPUTS), 10))
    blobs = pipe.combine()[0]
    assert len(blobs) == ROUTED
    result = {
        struct.pack("d", reduce(pipe.plan, pipe.layout, Dict(), arrived)["s"][0].as_py())
        for arrived in permutations(blobs)
    }
    assert len(result) == 1


def test_a_repeated_micro_batch_makes_the_same_bytes() -> None:
    made = []
    for _ in range(2):
        pipe = Pipe(plan_of(EVERYTHING, 2), buckets=2, max_bytes=60)
        pipe.write(1, [(n % 3, b"k%d" % (n % 11), n, n / 7) for n in range(200)], {0: 5})
        made.append(pipe.combine())
    assert made[0] == made[1]
