"""The policy that all forms of Dalton share: a worker is chosen for a tuple of a hot key, and then rewarded.

With probability 1 - eps the best worker of the key's row is chosen. Otherwise the policy explores: it draws
any worker, or any holder if the key has as many holders as the cap allows. The reward falls with the worker's
load and with the number of the key's holders. `dalton` says why, and what the paper leaves open. The values
are in `q_table`.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), equations 3 and 4.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from evenflow.generation.draws import draw, draw_unit
from evenflow.numeric.arrays import UInt64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.dalton.q_table import QTable, best_of, count_capped, nth_holder
from evenflow.partitioners.window import Lengths

_UNCAPPED = 1 << 40  # more holders than any key can have


class BanditPolicy(NamedTuple):
    """The options of the bandit, for kernels."""

    gamma: float
    """Step of learning: weight of the newest reward."""
    eps: float
    """Share of a hot key's tuples that explore."""
    p1: float
    """Weight of the worker's load in the reward."""
    p2: float
    """Weight of the key's holders in the reward."""
    cap_max: int
    """Holders that a key may have at most, where exploring is capped."""
    cap_growth: float
    """Share of hot keys at the cap from which the cap grows by one."""


@kernel
def choose(table: QTable, rng: UInt64s, r: Whole, eps: float, oldest: Whole) -> np.int64:
    """The worker for a tuple of the hot key in row r: the best worker, or now and then another to explore.

    `oldest`: the first slide of the window.
    """
    if draw_unit(rng) >= eps:
        return best_of(table, r)
    holder_count = table.row[r]["held"]
    if holder_count >= table.meta[()]["cap"]:
        return nth_holder(table, r, np.int64(draw(rng) % np.uint64(holder_count)), oldest)
    return np.int64(draw(rng) % np.uint64(table.last.shape[1]))


@kernel
def reward(load: Whole, total: Whole, holder_count: Whole, workers: Whole, policy: BanditPolicy) -> float:
    """R of 000 (equations 3 and 4) after the tuple was sent. Above -1 and below p1 if p1 + p2 = 1.

    `load` is that of the chosen worker, `total` that of all workers, `holder_count` the number of the key's
    holders.
    """
    average = total / workers
    return -(
        policy.p1 * ((load - average) / max(np.float64(load), average)) + policy.p2 * holder_count / workers
    )


@inlined
def raise_cap(table: QTable, policy: BanditPolicy) -> None:
    """Raise the cap by one holder if enough hot keys have as many holders as it allows."""
    meta = table.meta[()]
    if meta["cap"] < policy.cap_max and 0 < meta["capped"] >= policy.cap_growth * meta["hot"]:
        meta["cap"] += 1
        count_capped(table)


class BanditOptions(Lengths):
    """Options of every form of Dalton: those of the bandit and of the sliding window."""

    gamma: float = Field(0.1, gt=0, le=1, description="Step of learning: weight of the newest reward.")
    eps: float = Field(0.1, ge=0, le=1, description="Share of a hot key's tuples that explore.")
    p1: float = Field(0.5, ge=0, le=1, description="Weight of the worker's load in the reward. p1 + p2 = 1.")
    p2: float = Field(0.5, ge=0, le=1, description="Weight of the key's holders in the reward.")
    explore: Literal["uniform", "capped"] = Field(
        "uniform",
        description="Explore over all workers, or over the holders of a key that has `cap` of them.",
    )
    cap: int = Field(2, ge=1, le=1 << 20, description="Holders at first, for explore=capped.")
    cap_max: int = Field(6, ge=1, le=1 << 20, description="Holders at most, for explore=capped.")
    cap_growth: float = Field(
        0.7, gt=0, le=1, description="Share of hot keys at the cap from which the cap grows by one."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if abs(self.p1 + self.p2 - 1) > 1e-9:
            raise ValueError(f"p1 ({self.p1}) and p2 ({self.p2}) must sum to 1")
        if self.cap > self.cap_max:
            raise ValueError(f"cap ({self.cap}) must not be above cap_max ({self.cap_max})")
        return self

    @property
    def first_cap(self) -> int:
        """The cap at first: holders from which a key explores among its holders.
        Out of reach if explore=uniform.
        """
        return self.cap if self.explore == "capped" else _UNCAPPED

    def policy(self, gamma: float) -> BanditPolicy:
        """These options for kernels, with `gamma` as step of learning."""
        return BanditPolicy(gamma, self.eps, self.p1, self.p2, self.last_cap, self.cap_growth)

    @property
    def last_cap(self) -> int:
        """What the cap may grow to. 0 if there is no cap."""
        return self.cap_max if self.explore == "capped" else 0
