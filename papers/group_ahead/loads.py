"""How much data each batch has: the spikes of figure 3.6, and the loads of figure 3.7b.

The thesis does not give the load of figure 3.7b. These have the shapes of the closed loops
(`workbench.elastic.SHAPES`). A batch of 1 is the base. What comes varies from batch to batch by a gamma law.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenflow.numeric.arrays import Float64s

SPIKE = 15
"""The batch in which a spike begins. It lies in the middle of a group of ten."""
NOISE = 0.05
"""Standard deviation of the data of a batch, over its mean."""
_STAIR = 45
_PERIOD = 90


def lasting(batches: int) -> Float64s:
    """Twice the data from batch 15 on."""
    return np.where(_numbers(batches) < SPIKE, 1.0, 2.0)


def single(batches: int) -> Float64s:
    """Twice the data in batch 15 alone."""
    return np.where(_numbers(batches) == SPIKE, 2.0, 1.0)


SPIKES: dict[str, Callable[[int], Float64s]] = {"lasting": lasting, "single": single}
"""The words of the thesis fit both."""


def _spike(batches: int) -> Float64s:
    """Twice the data in the middle third."""
    numbers = _numbers(batches)
    return np.where((numbers > batches // 3) & (numbers <= 2 * batches // 3), 2.0, 1.0)


def _staircase(batches: int) -> Float64s:
    """Half of the base more every 45 batches."""
    return 1.0 + 0.5 * ((_numbers(batches) - 1) // _STAIR)


def _sine(batches: int) -> Float64s:
    """From 0.5 to 2.5, with a period of 90 batches."""
    return 1.5 + np.sin(2 * np.pi * _numbers(batches) / _PERIOD)


LOADS: dict[str, Callable[[int], Float64s]] = {"spike": _spike, "staircase": _staircase, "sine": _sine}


def drawn(load: str, batches: int, *, seed: int) -> Float64s:
    """Data of each batch of this load, shape (batches,)."""
    shape = 1 / NOISE**2
    return LOADS[load](batches) * np.random.default_rng(seed).gamma(shape, 1 / shape, batches)


def _numbers(batches: int) -> Float64s:
    return np.arange(1, batches + 1, dtype=np.float64)
