"""Disjoint LinUCB (003, eq. 8): one ridge regression for each arm, `A = I + sum s s'`, `b = sum r s`.

The inverse of A is updated with every observation (the rank-one formula of Sherman and Morrison). Now and
then it is computed afresh from A, so that rounding errors do not add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.numeric.arrays import Float64s

_ANEW = 256
"""Updates of an arm between two fresh inverses."""


class DisjointLinUCB:
    """A bandit of `arms` ridge regressions, each over contexts of `width` features.
    alpha: weight of the doubt.
    """

    def __init__(self, *, arms: int, width: int, alpha: float) -> None:
        self.alpha = alpha
        self.plays = np.zeros(arms, np.int64)
        self._design = np.tile(np.eye(width), (arms, 1, 1))
        self._inverse = self._design.copy()
        self._reward = np.zeros((arms, width))
        self._theta = np.zeros((arms, width))

    def expected(self, contexts: Float64s) -> Float64s:
        """The expected reward of each arm in its context, shape (arms,). contexts: shape (arms, width)."""
        return np.einsum("kd,kd->k", contexts, self._theta)

    def doubt(self, contexts: Float64s) -> Float64s:
        """alpha times the uncertainty of each arm's expected reward, `sqrt(s' A^-1 s)`, shape (arms,)."""
        spread = np.einsum("kd,kde,ke->k", contexts, self._inverse, contexts)
        # Rounding can leave a value just below 0.
        return self.alpha * np.sqrt(np.maximum(spread, 0))

    def choose(self, contexts: Float64s, *, first: int = 0) -> int:
        """The arm with the highest upper bound, which is the expected reward plus the doubt.

        Arms before `first` are left out. 003 does not say which of equal arms is chosen. Here it is the last
        one, which has the most units, so a bandit without knowledge begins with all units.
        """
        bounds = (self.expected(contexts) + self.doubt(contexts))[first:]
        # argmax returns the first of equals, so it searches from the end.
        return first + len(bounds) - 1 - int(np.argmax(bounds[::-1]))

    def learn(self, arm: int, context: Float64s, reward: float) -> None:
        """Take in that `arm` gave `reward` in this context. context: shape (width,)."""
        self.plays[arm] += 1
        self._design[arm] += np.outer(context, context)
        self._reward[arm] += reward * context
        if self.plays[arm] % _ANEW:
            # Sherman-Morrison: (A + s s')^-1 = A^-1 - (A^-1 s)(A^-1 s)' / (1 + s' A^-1 s).
            turned = self._inverse[arm] @ context
            self._inverse[arm] -= np.outer(turned, turned) / (1 + context @ turned)
        else:
            self._inverse[arm] = np.linalg.inv(self._design[arm])
        self._theta[arm] = self._inverse[arm] @ self._reward[arm]

    def state(self) -> dict[str, Any]:
        """What the bandit has learnt, as plain JSON: each array as a flat list in row-major order."""
        return {name: getattr(self, name).ravel().tolist() for name in _ARRAYS}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned. Raises ValueError, KeyError or TypeError for anything else.

        When it raises, nothing has changed.
        """
        arrays = {name: np.array(state[name], getattr(self, name).dtype) for name in _ARRAYS}
        for name, values in arrays.items():
            shape = getattr(self, name).shape
            if values.shape != (np.prod(shape),) or not np.isfinite(values).all():
                raise ValueError(f"{name} has other values")
        # A singular matrix raises here (LinAlgError is a ValueError). Otherwise a later `learn` would raise.
        np.linalg.inv(arrays["_design"].reshape(self._design.shape))
        for name, values in arrays.items():
            setattr(self, name, values.reshape(getattr(self, name).shape))


_ARRAYS = ("plays", "_design", "_inverse", "_reward", "_theta")
