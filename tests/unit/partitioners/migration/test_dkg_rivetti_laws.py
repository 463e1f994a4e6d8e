"""Laws of DKG of Rivetti et al.: keys are learned, placed once by greedy scheduling, and stay where they
are.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import candidate
from evenflow.partitioners import create
from evenflow.sketches.space_saving import SpaceSaving
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, zipf

few = examples(60)
streams = st.builds(
    zipf, st.integers(1, 600), keys=st.integers(1, 80), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def naive(keys: np.ndarray, n: int, *, learning: int, theta: float, precision: float, cells: float) -> list:
    """The rule in plain Python."""
    hashed, many = candidate(keys, 1, n, 7).tolist(), math.ceil(cells * n)
    cell_of = dict(zip(keys.tolist(), candidate(keys, 1, many, 7).tolist(), strict=True))
    if len(keys) < learning:
        return hashed
    summary = SpaceSaving(math.ceil(precision / theta))
    summary.offer(keys[:learning])
    sure = {int(k): int(c - e) for k, c, e in zip(*summary.counters(), strict=True)}
    heavy = {key: count for key, count in sure.items() if count >= theta * learning}
    weights = [0] * many
    for key in keys[:learning].tolist():
        weights[cell_of[key]] += 1
    for key, count in heavy.items():
        weights[cell_of[key]] -= count
    places = [(-weight, 0, cell) for cell, weight in enumerate(weights)]
    places += [(-count, 1, key) for key, count in heavy.items()]
    loads, owner = [0] * n, {}
    for weight, kind, name in sorted(places):
        owner[kind, name] = worker = loads.index(min(loads))
        loads[worker] -= weight
    later = [owner[(1, k) if k in heavy else (0, cell_of[k])] for k in keys[learning:].tolist()]
    return hashed[:learning] + later


@few
@given(
    streams,
    st.integers(1, 20),
    st.sampled_from([1, 10, 100, 400]),
    st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    st.sampled_from([1.0, 2.0, 3.5]),
    st.sampled_from([1.0, 1.3, 4.0]),
)
def test_dkg_rivetti_equals_the_rule_in_plain_python(
    stream: Stream, n: int, learning: int, theta: float, precision: float, cells: float
) -> None:
    shape = {"learning": learning, "theta": theta, "precision": precision, "cells": cells}
    out = create("dkg-rivetti", workers=n, **shape).assign(*stream)
    assert out.tolist() == naive(stream[0], n, **shape)


def test_a_key_has_one_worker_after_learning() -> None:
    keys, times = zipf(30_000, z=1.4)
    p = create("dkg-rivetti", workers=16)
    assert p.assign(keys[:10_000], times[:10_000]).tolist() == candidate(keys[:10_000], 1, 16, 7).tolist()
    later = p.assign(keys[10_000:], times[10_000:])
    for key in np.unique(keys[10_000:]):
        assert len(np.unique(later[keys[10_000:] == key])) == 1


def test_keys_are_nearer_to_level_than_by_hashing() -> None:
    """The hottest key is whole, so its share is the least that the fullest worker can have."""
    keys, times = zipf(60_000, z=1.2)
    p = create("dkg-rivetti", workers=8, learning=20_000)
    later = p.assign(keys, times)[20_000:]
    hottest = np.unique(keys[20_000:], return_counts=True)[1].max()
    hashed = np.bincount(candidate(keys[20_000:], 1, 8, 7), minlength=8).max()
    fullest = np.bincount(later, minlength=8).max()
    assert fullest < 1.1 * max(hottest, len(later) / 8)
    assert fullest < hashed / 1.2


def test_heavy_hitters_are_told_apart_after_learning() -> None:
    keys, times = zipf(3_000, z=2.0)
    p = create("dkg-rivetti", workers=4, learning=2_000, theta=0.1)
    p.assign(keys[:1_999], times[:1_999])
    assert p.observe().head_keys == 0
    assert p.explain(0).rule.startswith("learning from 1 more")
    p.assign(keys[1_999:], times[1_999:])
    assert p.observe().head_keys == np.count_nonzero(np.unique(keys[:2_000], return_counts=True)[1] >= 200)
    hottest, counts = np.unique(keys[:2_000], return_counts=True)
    assert p.explain(int(hottest[counts.argmax()])).rule.startswith("frequent")
    assert p.explain(987_654_321).rule.startswith("not frequent")


def test_a_rescale_begins_to_learn_again() -> None:
    keys, times = zipf(2_000)
    p = create("dkg-rivetti", workers=4, learning=500)
    p.assign(keys, times)
    p.rescale(6)
    assert p.assign(keys[:500], times[:500]).tolist() == candidate(keys[:500], 1, 6, 7).tolist()
    assert p.assign(keys, times).tolist() != candidate(keys, 1, 6, 7).tolist()


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(ConfigError, match="cells"):
        create("dkg-rivetti", workers=1 << 20, cells=1000)
