"""Whether the hot keys of a sample stay the same."""

from __future__ import annotations

import numpy as np

from evenflow.arrays import Float64s, Int32s
from evenflow.simulation import KeyedStream

PARTS = 10
FEWEST = 20
"""Tuples that a key at the threshold must have in a part, so that chance does not look like change."""


def hot_turnover(stream: KeyedStream, *, least: float) -> float | None:
    """Of the tuples of hot keys, those of keys that have just become hot; None where that cannot be seen.

    The sample is cut into ten consecutive parts of equally many tuples, fewer where a part would be too small to tell.
    A key is hot in a part with at least this share (`least`) of its tuples. It has just become so when it had less
    than half of that share in the part before. The figure is the mean over the parts but the first.
    """
    parts = min(PARTS, int(len(stream) * least / FEWEST))
    if parts < 2:
        return None
    edges = np.linspace(0, len(stream), parts + 1).astype(np.int64)
    before = _shares(stream.codes[: edges[1]], stream.key_count)
    found = []
    for begin, end in zip(edges[1:-1].tolist(), edges[2:].tolist(), strict=True):
        now = _shares(stream.codes[begin:end], stream.key_count)
        hot = now >= least
        if hot.any():
            found.append(now[hot & (before < least / 2)].sum() / now[hot].sum())
        before = now
    return float(np.mean(found)) if found else None


def _shares(codes: Int32s, keys: int) -> Float64s:
    return np.bincount(codes, minlength=keys) / len(codes)
