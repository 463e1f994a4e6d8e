"""Disjoint LinUCB (003, eq. 8): one ridge regression for each arm, `A = I + sum s s'`, `b = sum r s`.

The inverse of A follows every rank-one update (Sherman and Morrison). It is made anew from A now and then, so that
rounding never adds up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.arrays import Float64s

_ANEW = 256
"""Updates of an arm from one fresh inverse to the next."""


class DisjointLinUCB:
    """`arms` regressions over contexts of `width` features."""

    def __init__(self, *, arms: int, width: int, alpha: float) -> None:
        self.alpha = alpha
        self.plays = np.zeros(arms, np.int64)
        self._design = np.tile(np.eye(width), (arms, 1, 1))
        self._inverse = self._design.copy()
        self._reward = np.zeros((arms, width))
        self._theta = np.zeros((arms, width))

    @property
    def coefficients(self) -> Float64s:
        """theta of each arm, shape (arms, width)."""
        return self._theta

    def expected(self, contexts: Float64s) -> Float64s:
        """What each arm is likely to give in its context, shape (arms,). contexts: (arms, width)."""
        return np.einsum("kd,kd->k", contexts, self._theta)

    def doubt(self, contexts: Float64s) -> Float64s:
        """How far that may be off, times alpha, shape (arms,)."""
        spread = np.einsum("kd,kde,ke->k", contexts, self._inverse, contexts)
        return self.alpha * np.sqrt(np.maximum(spread, 0))

    def choose(self, contexts: Float64s) -> int:
        """The arm with the highest upper bound. The last one of equals."""
        bounds = self.expected(contexts) + self.doubt(contexts)
        return len(bounds) - 1 - int(np.argmax(bounds[::-1]))

    def learn(self, arm: int, context: Float64s, reward: float) -> None:
        """`arm` gave `reward` in this context, shape (width,)."""
        self.plays[arm] += 1
        self._design[arm] += np.outer(context, context)
        self._reward[arm] += reward * context
        if self.plays[arm] % _ANEW:
            turned = self._inverse[arm] @ context
            self._inverse[arm] -= np.outer(turned, turned) / (1 + context @ turned)
        else:
            self._inverse[arm] = np.linalg.inv(self._design[arm])
        self._theta[arm] = self._inverse[arm] @ self._reward[arm]

    def state(self) -> dict[str, Any]:
        """As plain JSON. Numbers in the order of the arrays."""
        return {name: getattr(self, name).ravel().tolist() for name in _ARRAYS}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave. ValueError, KeyError or TypeError for anything else."""
        taken = {name: np.array(state[name], getattr(self, name).dtype) for name in _ARRAYS}
        for name, values in taken.items():
            shape = getattr(self, name).shape
            if values.shape != (np.prod(shape),) or not np.isfinite(values).all():
                raise ValueError(f"{name} has other values")
        np.linalg.inv(taken["_design"].reshape(self._design.shape))  # else a later update would raise
        for name, values in taken.items():
            setattr(self, name, values.reshape(getattr(self, name).shape))


_ARRAYS = ("plays", "_design", "_inverse", "_reward", "_theta")
