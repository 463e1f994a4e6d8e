"""001, Abdelhamid's thesis (2021), chapter 2: BSI, BCI and KSR of Prompt and its rivals, and the reduce
buckets of Alg. 3.

A micro-batch has 100,000 tuples in 16 data blocks. Rules with memory forget at the end of a batch. The thesis
uses tweets, TPC-H and a synthetic Zipf stream. Here the streams are Zipf with three exponents, words, TPC-H's
lineitem by its part (the thesis's query 1), and flights. Synthetic streams are drawn anew for each seed,
since Prompt itself uses no hash. TPC-H is also cut into batches and blocks of other sizes. Reduce buckets are
hashed with another function for each seed: the seed renames the key hashes, and `bucket_of` then mixes the
new names. They are measured in tuples, and where map tasks combine in partial results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenflow import metrics
from evenflow.charts.axes import decades
from evenflow.charts.page import page
from evenflow.keys import bucket_of, salts
from evenflow.partitioners.prompt.reduce_buckets import MapOutput, allocate_all, clusters_of
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.markdown import figure, number, ratio, table
from papers.paper_001.block_claims import CLAIMS
from papers.paper_001.block_grid import (
    BATCHES,
    BUCKETS,
    BY_SIZE,
    COMBINED,
    NAME,
    ONE_TASK,
    RULES,
    TPCH,
    WORKERS,
    batch_tuples,
    block_cell,
    cells,
    combined_cell,
    one_task_cell,
    size_cell,
    sizes,
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


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
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
        batch = _batch(cell, plan)
        workers = tumbled(stream, cell.partitioner, workers=cell.workers, seed=seed, window_ms=batch)
        each = [
            _figures(cell, workers[rows], stream.codes[rows], stream.keys[rows] ^ renamed)
            for rows in windows(stream, batch)
        ]
        for name in each[0]:
            series.setdefault(name, []).append(
                float(np.mean([batch_figures[name] for batch_figures in each]))
            )
    return series


def _batch(cell: Cell, plan: RunPlan) -> int:
    """Tuples of a batch."""
    own = cell.experiment.partition(" batches of ")[2]
    return int(own) if own else batch_tuples(plan)


def _figures(cell: Cell, blocks: np.ndarray, codes: np.ndarray, keys: np.ndarray) -> dict[str, float]:
    """What is kept of a batch: bsi, bci, fullest, ksr and mpi of its data blocks, and of its reduce buckets
    max - mean: hashed and allocated, by the hash of the key and by 001's Alg. 3. Of
    one task for all data blocks: the last two, and what the split keys alone make.

    Buckets are measured in tuples. Where map tasks combine, they are measured in partial results.
    """
    clusters = clusters_of(blocks, keys)
    if cell.experiment == COMBINED:
        return _bucket_figures(clusters._replace(sizes=np.ones_like(clusters.sizes)))
    if cell.experiment == ONE_TASK:
        one = clusters._replace(data_block=np.zeros_like(clusters.data_block))
        return _bucket_figures(one) | {"split": _above_mean_by_split(clusters)}
    workers = cell.workers
    return {
        "bsi": metrics.block_size_imbalance(blocks, workers),
        "bci": metrics.block_cardinality_imbalance(blocks, codes, workers),
        "fullest": float(metrics.worker_cardinalities(blocks, codes, workers).max()),
        "ksr": metrics.replication_factor(blocks, codes),
        "mpi": metrics.micro_batch_index(blocks, codes, workers),
        **_bucket_figures(clusters),
    }


def _above_mean_by_split(clusters: MapOutput) -> float:
    """Tuples above the mean of all buckets that the split keys alone make in a bucket, 0 for none."""
    sizes = np.where(clusters.split, clusters.sizes, 0)
    of_split = np.bincount(bucket_of(clusters.keys, BUCKETS), weights=sizes, minlength=BUCKETS)
    return max(0.0, float(of_split.max() - clusters.sizes.sum() / BUCKETS))


def _bucket_figures(clusters: MapOutput) -> dict[str, float]:
    hashed, allocated = (
        np.bincount(buckets, weights=clusters.sizes, minlength=BUCKETS)
        for buckets in (bucket_of(clusters.keys, BUCKETS), allocate_all(clusters, BUCKETS))
    )
    return {
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
        *_by_size(figures, plan),
        *_combined(figures, plan),
        *_one_task(figures, plan),
        f"{PICTURE}:",
        "",
        "![BSI relative to hashing against BCI relative to shuffling](reproducing/micro-batch.svg)",
    ]


def _by_size(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """BCI on TPC-H by the size of a batch and the number of data blocks."""
    names = sizes(plan)
    return [
        f"BCI on {TPCH}, with other sizes of a batch and other numbers of data blocks:",
        "",
        *table(
            ["rule", *names],
            (
                [f"`{rule}`", *(figure(figures, size_cell(plan, size, rule), "bci") for size in names)]
                for rule in BY_SIZE
            ),
        ),
        "",
    ]


def _combined(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Reduce buckets where map tasks combine."""
    return [
        (
            "Reduce buckets where map tasks combine. A cluster is one partial result then, and Alg. 3 counts"
            " it as one. max - mean of the partial results of the buckets, of Prompt's data blocks:"
        ),
        "",
        *table(
            ["stream", "hashed", "Alg. 3"],
            (
                [
                    stream,
                    *(figure(figures, combined_cell(plan, stream), name) for name in ("hashed", "allocated")),
                ]
                for stream in streams(plan)
            ),
        ),
        "",
    ]


def _one_task(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Reduce buckets where one map task places the clusters of all data blocks."""
    return [
        (
            "Reduce buckets where one map task places the clusters of all of Prompt's data blocks: max - mean"
            " of the tuples of the buckets, and what the split keys, which are hashed, alone make above the"
            " mean:"
        ),
        "",
        *table(
            ["stream", "hashed", "Alg. 3", "split keys alone"],
            (
                [
                    stream,
                    *(
                        figure(figures, one_task_cell(plan, stream), name)
                        for name in ("hashed", "allocated", "split")
                    ),
                ]
                for stream in streams(plan)
            ),
        ),
        "",
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
