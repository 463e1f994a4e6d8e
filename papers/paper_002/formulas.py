"""The formulas of 002, computed exactly: keys in the head, d, and memory relative to PKG and shuffling
(figures 3-6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from evenflow.generation.rank_laws import zipf_cdf
from evenflow.metrics import memory_against
from evenflow.numeric.arrays import Float64s
from evenflow.partitioners.choices.d_choices import find_optimal_choices
from papers.paper_002.grid import EPS, FORMULA_ZIPFS, KEYS, PAPER_TUPLES


@cache
def shares(keys: int, zipf: float) -> Float64s:
    """Probabilities p_k of a Zipf law, descending. Shape (keys,)."""
    return np.diff(zipf_cdf(keys, zipf), prepend=0.0)


@dataclass(frozen=True)
class Formula:
    """What the paper's formulas give for one distribution and n."""

    zipf: float
    """Exponent of the distribution."""
    workers: int
    """n."""
    head: int
    """Keys with p >= 1/(5n)."""
    short_head: int
    """Keys with p >= 2/n."""
    d: int
    """Choices for each key of the head, by the paper's optimisation."""
    over_pkg: dict[str, float]
    """Memory of d-choices and w-choices / memory of PKG."""
    over_shuffle: dict[str, float]
    """Memory of d-choices and w-choices / memory of shuffling."""


@cache
def formula(zipf: float, n: int, keys: int = KEYS, tuples: int = PAPER_TUPLES) -> Formula:
    """Section IV-B: memory is the sum of min(f, d) over the head and of min(f, 2) over the tail."""
    p = shares(keys, zipf)
    frequencies = p * tuples
    head = int((p >= 1 / (5 * n)).sum())
    d = find_optimal_choices(p[:head], n, EPS)

    def memory(for_head: int) -> float:
        return memory_against(frequencies[:head], for_head) + memory_against(frequencies[head:], 2)

    pkg, shuffle = memory_against(frequencies, 2), memory_against(frequencies, n)
    ours = {"d-choices": memory(d), "w-choices": memory(n)}
    return Formula(
        zipf,
        n,
        head,
        int((p >= 2 / n).sum()),
        d,
        {rule: value / pkg for rule, value in ours.items()},
        {rule: value / shuffle for rule, value in ours.items()},
    )


def formulas(n: int) -> list[Formula]:
    """The formulas for every exponent of the figures, with `n` workers."""
    return [formula(zipf, n) for zipf in FORMULA_ZIPFS]
