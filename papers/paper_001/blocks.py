"""001, Abdelhamid's thesis (2021), chapter 2: BSI, BCI and KSR of Prompt and its rivals, and the reduce
buckets of Alg. 3.

A micro-batch has 100,000 tuples in 16 data blocks. Rules with memory forget at the end of a batch. The thesis
uses tweets, TPC-H and a synthetic Zipf stream. Here the streams are Zipf with three exponents, words, TPC-H's
lineitem by its part (the thesis's query 1), and flights. Synthetic streams are drawn anew for each seed,
since Prompt itself uses no hash. Reduce buckets are hashed with another function for each seed: the seed
renames the key hashes, and `bucket_of` then mixes the new names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenflow import metrics
from evenflow.charts.axes import decades
from evenflow.charts.page import page
from evenflow.keys import bucket_of, salts
from evenflow.partitioners.prompt.reduce_buckets import allocate_all, clusters_of
from papers.cells.run_plan import Cell, Opened, RunPlan
from papers.cells.store import SectionFigures, Values
from papers.markdown import figure, number, ratio, table
from papers.paper_001.block_claims import CLAIMS
from papers.paper_001.block_grid import (
    BATCHES,
    BUCKETS,
    NAME,
    RULES,
    WORKERS,
    batch_tuples,
    block_cell,
    cells,
    streams,
)
from papers.pictures.charts import Emphasis, scatter
from papers.routing import tumbled, windows

if TYPE_CHECKING:
    import altair

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
TITLE = "001: Prompt's blocks and buckets"
PICTURE = (
    "Prompt's blocks are equally full, as shuffling's are; how many keys they hold depends on the stream"
)
EMPHASIS = Emphasis("prompt", (*RULES[:6], *RULES[7:]))
_LEAST_BSI = 1e-6
"""Least BSI that is drawn, as a share of hashing's. Smaller ones are drawn here."""


def measure(cell: Cell, opened: Opened, plan: RunPlan) -> Values:
    """Means over the batches, one value per seed."""
    series: Values = {}
    for seed in plan.seeds:
        stream = opened.at(seed)
        renamed = salts(seed, 1)[0]
        # Here a batch is a number of tuples, so row numbers take the place of event times.
        if stream.next_time is None:
            stream = type(stream)(
                stream.keys, stream.codes, np.arange(len(stream)), stream.key_count, len(stream)
            )
        batch = batch_tuples(plan)
        workers = tumbled(stream, cell.partitioner, workers=WORKERS, seed=seed, window_ms=batch)
        each = [
            _block_figures(workers[rows], stream.codes[rows], stream.keys[rows] ^ renamed)
            for rows in windows(stream, batch)
        ]
        for name in each[0]:
            series.setdefault(name, []).append(
                float(np.mean([batch_figures[name] for batch_figures in each]))
            )
    return series


def _block_figures(blocks: np.ndarray, codes: np.ndarray, keys: np.ndarray) -> dict[str, float]:
    clusters = clusters_of(blocks, keys)
    sizes = clusters.sizes
    # Tuples of each reduce bucket, by the hash of the key and by 001's Alg. 3.
    hashed, allocated = (
        np.bincount(buckets, weights=sizes, minlength=BUCKETS)
        for buckets in (bucket_of(clusters.keys, BUCKETS), allocate_all(clusters, BUCKETS))
    )
    return {
        "bsi": metrics.block_size_imbalance(blocks, WORKERS),
        "bci": metrics.block_cardinality_imbalance(blocks, codes, WORKERS),
        "fullest": float(metrics.worker_cardinalities(blocks, codes, WORKERS).max()),
        "ksr": metrics.replication_factor(blocks, codes),
        "mpi": metrics.micro_batch_index(blocks, codes, WORKERS),
        "hashed": float(hashed.max() - hashed.mean()),
        "allocated": float(allocated.max() - allocated.mean()),
    }


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and a table for each stream."""
    lines = [
        (
            f"There are P = {WORKERS} blocks and {BUCKETS} reduce buckets. A batch has {batch_tuples(plan):,}"
            f" tuples. Figures are means over {BATCHES} batches (3 of flights). BSI is in tuples. BCI and the"
            ' fullest block are in keys. "buckets" is max - mean of the tuples of the reduce buckets, once'
            " when the clusters are hashed and once when Alg. 3 places them. MPI adds BSI, BCI and KSR with"
            " a third each, so BSI dominates it. In words the thesis defines KSR as keys / fragments. Its"
            " equation has the inverse, which is what is meant."
        ),
        "",
    ]
    for stream in streams(plan):
        lines += [f"Stream: {stream}", ""]
        lines += table(
            ["rule", "BSI", "BCI", "fullest", "KSR", "MPI", "buckets, hashed", "buckets, Alg. 3"],
            (
                [f"`{rule}`"]
                + [
                    figure(figures, block_cell(plan, stream, rule), name, ratio if name == "ksr" else number)
                    for name in ("bsi", "bci", "fullest", "ksr", "mpi", "hashed", "allocated")
                ]
                for rule in RULES
            ),
        )
        lines.append("")
    return [
        *lines,
        f"{PICTURE}:",
        "",
        "![BSI relative to hashing against BCI relative to shuffling](reproducing/micro-batch.svg)",
    ]


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = [
        scatter(
            {rule: _place(figures, plan, stream, rule) for rule in RULES},
            EMPHASIS,
            x_title="BCI / shuffling's",
            y=decades("BSI / hashing's", [_LEAST_BSI, 1.0], floor=_LEAST_BSI),
            title=stream,
        )
        for stream in streams(plan)
        if all(block_cell(plan, stream, rule) in figures for rule in RULES)
    ]
    if not panels:
        return {}
    subtitle = ["Down: tuples of the blocks more even (BSI). Left: keys of the blocks more even (BCI)."]
    return {
        "micro-batch": page(
            panels, title="BSI relative to hashing against BCI relative to shuffling", subtitle=subtitle
        )
    }


def _place(figures: SectionFigures, plan: RunPlan, stream: str, rule: str) -> tuple[float, float]:
    return (
        max(1e-3, _against(figures, plan, stream, rule, "shuffle", "bci")),
        max(_LEAST_BSI, _against(figures, plan, stream, rule, "hashing", "bsi")),
    )


def _against(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, base: str, name: str) -> float:
    # A rule may have no imbalance at all.
    least = max(1e-9, figures.median(block_cell(plan, stream, base), name))
    return figures.median(block_cell(plan, stream, rule), name) / least
