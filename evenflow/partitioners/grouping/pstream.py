"""PStream: hot keys are shuffled, rare keys are hashed. Coins tell which keys are hot now.

Idea: each tuple flips a coin until the coin shows its other side. Only tuples with at least r flips (one
tuple in 2^r) are looked at. A look makes the tuple's key more popular, and then all keys a little less
popular (`coin_synopsis`). So hot keys are found in little memory, and are forgotten when they no longer come.
Tuples of hot keys take turns over all workers. All other tuples go to F_1(key).

Parameters: `r` (6). `l` bits of popularity (16). `p` probability with which a key's popularity declines at
each look (0.01): a key is hot now and then from a share of about p/2 of the stream on, and steadily above p.
A tuple is looked at before it is routed. More than r + l - 1 flips count as r + l - 1. Source s of S starts
its turns at worker s*n/S, as in shuffle.
Where the paper is not public, the rule is that of the authors' repository. The repository lacks the threshold
of the journal version, which adapts itself. Its code differs from its own description: for c flips it sets
bit c, not c - r. It never lets a key cease to be hot (when a key is forgotten, the code announces the key of
the present tuple). And it keeps hot keys in a counting Bloom filter of 16 counters, so that soon most keys
count as hot. Here the description is followed, and hot keys are kept as they are.
A rescale keeps what is known of keys. There are no loads and no windows.
Cost per tuple: one draw and one visit of the synopsis. A look, at one tuple in 2^r, costs about 20 draws.
State: 13 bytes x 16/p to 32/p, the generator, the next worker.
Paper: Chen, Zhang and Jin, "PStream: A Popularity-Aware Differentiated Distributed Stream Processing System",
IEEE Transactions on Computers 70(10), 2021. First at ICNP 2017.

Here every tuple is looked at. `a` is hot from its third tuple on, and takes turns:

    >>> create("pstream", workers=4, r=0).assign(keys, times).tolist()
    [3, 3, 1, 0, 0, 1]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.generation.draws import draw, generator
from evenflow.keys import Candidates, candidate_kernel, candidates, workers_of
from evenflow.numeric.arrays import Int64s, State, UInt64s
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.grouping.coin_synopsis import (
    CoinSynopsis,
    coin_synopsis,
    decline,
    log_stay,
    look,
    place_of,
)
from evenflow.partitioners.papers import PSTREAM
from evenflow.text.options import Options

_ONE = np.uint64(1)


@inlined
def _flips(coins: np.uint64, most: int) -> int:
    """The number of zero bits at the low end of `coins`, at most `most`. Each bit is the flip of a coin."""
    flips = 0
    while flips < most and not (coins >> np.uint64(flips)) & _ONE:
        flips += 1
    return flips


class _Rule(NamedTuple):
    """The settings of pstream, for kernels."""

    among: Candidates
    """The one candidate of each rare key."""
    r: int
    """One tuple in 2^r is looked at."""
    l: int  # noqa: E741 - the paper's name
    """Bits of a key's popularity."""
    stay: float
    """log(1 - p), where p is the probability that a key's popularity declines at a look."""


@kernel
def _route(block: Block, synopsis: CoinSynopsis, rng: UInt64s, turn: Int64s, rule: _Rule) -> None:
    family, workers = rule.among.family, rule.among.workers
    for row in range(block.keys.shape[0]):
        key = block.keys[row]
        spot = mix64(key)
        flips = _flips(draw(rng), rule.r + rule.l - 1)
        if flips >= rule.r:
            look(synopsis, spot, key, flips - rule.r)
            decline(synopsis, rng, rule.stay)
        at = place_of(synopsis, spot, key)
        if at >= 0 and synopsis.hot[at]:
            block.out[row] = turn[0]
            turn[0] = turn[0] + 1 if turn[0] + 1 < np.int64(workers) else 0
        else:
            block.out[row] = candidate_kernel(key, family[0], workers)


class PStreamOptions(Options):
    """Options of pstream. See the module's docstring."""

    r: int = Field(6, ge=0, le=32, description="One tuple in 2^r is looked at.")
    l: int = Field(16, ge=2, le=32, description="Bits of a key's popularity.")  # noqa: E741
    p: float = Field(
        0.01, ge=1e-4, le=1, description="Probability that a key's popularity declines at a look."
    )


class PStream(Partitioner):
    """Hot keys take turns over all workers, rare keys are hashed. Coins tell which keys are hot."""

    options_type = PStreamOptions
    papers = (PSTREAM,)
    hashed_homes = True
    options: PStreamOptions

    def _start(self) -> None:
        self._synopsis = coin_synopsis(self.options.p)
        self._rng = generator(self.seed, self.source)
        self._rescale()

    def _rescale(self) -> None:
        self._turn = np.array([self.source * self.workers // self.sources], np.int64)

    def _assign(self, block: Block) -> None:
        options = self.options
        rule = _Rule(candidates(self.seed, 1, self.workers), options.r, options.l, log_stay(options.p))
        _route(block, self._synopsis, self._rng, self._turn, rule)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        known, turn = self._synopsis, int(self._turn[0])
        (home,) = workers_of(int(key), candidates(self.seed, 1, self.workers))
        hot = bool(((known.key == key) & (known.bits != 0) & (known.hot != 0)).any())
        rule = (
            f"hot: all workers take turns, the next is worker {turn}"
            if hot
            else "not hot: its hash names the worker"
        )
        return Explanation(
            rule=f"{rule}. One tuple in {1 << self.options.r} is looked at, and may change that",
            workers=tuple(dict.fromkeys((turn, home) if hot else (home, turn))),
            home=home,
        )

    def _state(self) -> State:
        return {**self._synopsis._asdict(), "rng": self._rng, "turn": self._turn}

    def _load_state(self, state: State) -> None:
        self._synopsis = CoinSynopsis(**{name: state[name] for name in CoinSynopsis._fields})
        self._rng, self._turn = state["rng"], state["turn"]

    def _choices(self) -> int:
        return self.workers

    def _head_keys(self) -> int:
        return int(self._synopsis.hot.sum())
