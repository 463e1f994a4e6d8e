"""How even PartLy's data blocks are, and how many keys it splits (001, fig. 4.7 and section 4.7.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.partitioners.partly_picture import quality
from benchmarks.pictures import PLOTS, keep
from evenflow.generation.rank_laws import Zipf
from evenflow.numeric.arrays import Int64s, UInt64s
from evenflow.partitioners import create
from evenflow.simulation.streams import rank_hashes
from evenflow.text.options import parse_choice

ID = "partitioners-partly-quality"
WHAT = (
    "BSI, BCI, KSR and split keys of PartLy's data blocks beside Prompt's and others', Zipf 0.2 ... 2.0; with"
    " a chart"
)
DATA_BLOCKS = 24
RULES = {
    "partly": "partly:fallback=false",
    "prompt": "prompt",
    "prompt:rest=roomiest": "prompt:rest=roomiest",
    "cam": "cam",
    "pk5": "pk5",
    "hashing": "hashing",
    "shuffle": "shuffle",
}
"""Name in the figures -> the partitioner. Each forgets everything at the end of a batch."""
SEED = 90_001
"""Training and its held-out batches draw from other seeds."""
_SIZES = ((200, 10_000), (2_000, 100_000), (20_000, 300_000))
"""Keys and tuples of a batch."""


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each size, exponent and rule: means over batches, which every rule gets."""
    batches, sizes = (1, _SIZES[:1]) if smoke else (4, _SIZES)
    rows = []
    for keys, tuples in sizes:
        hashes = rank_hashes(keys)
        for zipf in (0.5, 1.0) if smoke else (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0):
            drawn = [zipf_batch(keys, tuples, zipf, seed) for seed in range(batches)]
            for name, rule in RULES.items():
                figures = [_figures(batch, hashes, rule, seed) for seed, batch in enumerate(drawn)]
                means = {
                    figure: round(float(np.mean([of_batch[figure] for of_batch in figures])), 5)
                    for figure in figures[0]
                }
                rows.append({"partitioner": name, "keys": keys, "tuples": tuples, "zipf": zipf, **means})
    plot = PLOTS / f"{ID}.svg"
    keep([*rows, *({**row, "keys": 2_000} for row in rows if smoke)], quality, plot)
    return {"data_blocks": DATA_BLOCKS, "plot": str(plot), "rows": rows}


def zipf_batch(keys: int, tuples: int, zipf: float, seed: int) -> Int64s:
    """The rank of each tuple's key, shape (tuples,)."""
    rng = np.random.default_rng([SEED, seed])
    ranks: Int64s = Zipf(keys, zipf).ranks(rng.random(tuples), 0).astype(np.int64)
    return ranks


def _figures(ranks: Int64s, hashes: UInt64s, rule: str, seed: int) -> dict[str, float]:
    """BSI, BCI, KSR and split keys of a batch (`evenflow.metrics.data_blocks`). hashes: of each rank."""
    name, options = parse_choice(rule)
    partitioner = create(name, workers=DATA_BLOCKS, seed=seed, **options)
    out = partitioner.assign_batch(hashes[ranks], np.arange(len(ranks)))
    pairs = np.bincount(ranks * DATA_BLOCKS + out, minlength=len(hashes) * DATA_BLOCKS).reshape(
        -1, DATA_BLOCKS
    )
    sizes, cardinalities, holders = pairs.sum(axis=0), (pairs > 0).sum(axis=0), (pairs > 0).sum(axis=1)
    distinct = int((holders > 0).sum())
    bsi, bci = float(sizes.max() - sizes.mean()), float(cardinalities.max() - cardinalities.mean())
    return {
        "bsi": bsi,
        "bci": bci,
        "bsi_share": bsi / float(sizes.mean()),
        "bci_share": bci * DATA_BLOCKS / distinct,
        "ksr": float(holders.sum()) / distinct,
        "split_keys": float((holders > 1).sum()),
    }
