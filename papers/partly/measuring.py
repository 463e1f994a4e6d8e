"""Data blocks of a cell: their imbalance, split keys, and the variance of the times of map and reduce
tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evenflow.keys import bucket_of, salts
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.partitioners import create
from evenflow.partitioners.prompt.reduce_buckets import MapOutput, allocate_all
from evenflow.simulation import KeyedStream
from evenflow.simulation.streams import rank_hashes
from evenflow.text.options import parse_choice
from evenflow.training.batches import BatchLaw
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.drawn_streams import TPCH_Q3
from papers.partly.grid import (
    BY_TIMES,
    BY_TIMES_FILE,
    DATA_BLOCKS,
    OVER,
    PLANNERS,
    TRAININGS,
    batch_tuples,
)
from papers.routing import windows
from papers.unit_costs import unit_costs

ROOT = Path(__file__).parents[2]
HASHES = 5
"""Hash functions that reduce tasks are hashed with. Variances are means over them, against the noise of
one.
"""
_TRAINING_SEED = (7, 0)
"""What the shipped policy's training drew its batches with (`training.learner`)."""
_RENAMING = 1 << 20
"""Renames the keys for the reduce tasks, so that a key's task says nothing of its data block."""


def measurable(cell: Cell) -> bool:
    """Whether the policy of the cell is there."""
    return cell.partitioner != BY_TIMES or (ROOT / BY_TIMES_FILE).exists()


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """Means over the batches, one value per seed. What is kept has one value for each point."""
    if cell.experiment == "training":
        return _training(TRAININGS[cell.stream.kind])
    if cell.experiment == "plan":
        return _times(cell.partitioner)
    series: Values = {}
    for seed in plan.seeds:
        each = [
            _figures(keys, codes, seed, cell.partitioner)
            for keys, codes in _batches(cell, opened, seed, plan)
        ]
        for name in each[0]:
            series.setdefault(name, []).append(
                float(np.mean([batch_figures[name] for batch_figures in each]))
            )
    return series


def _batches(cell: Cell, opened: StreamCache, seed: int, plan: RunPlan) -> Iterator[tuple[UInt64s, Int64s]]:
    """The hash and the number of each tuple's key, batch by batch."""
    if cell.stream.kind == "partly-training":
        yield from _trained(seed, cell.stream.tuples)
        return
    # Streams of one draw have the same tuples for every seed, which renames their keys.
    one_draw = cell.stream.is_data or cell.stream.kind == TPCH_Q3
    stream = opened.at() if one_draw else opened.at(seed)
    # A batch is a number of tuples, so row numbers take the place of event times.
    rows = KeyedStream(stream.keys, stream.codes, np.arange(len(stream)), stream.key_count, len(stream))
    renamed = stream.keys ^ salts(seed, 1)[0] if one_draw else stream.keys
    for part in windows(rows, batch_tuples(plan)):
        yield renamed[part], stream.codes[part].astype(np.int64)


def _trained(seed: int, number: int) -> Iterator[tuple[UInt64s, Int64s]]:
    """So many of the first batches of the training, others for each seed. Here each has 24 data blocks."""
    rng, law = np.random.default_rng(_TRAINING_SEED), BatchLaw()
    drawn = [law.draw(rng).counts for _ in range(number * seed)][number * (seed - 1) :]
    for counts in drawn:
        codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
        yield rank_hashes(len(counts))[codes] ^ salts(seed, 1)[0], codes


def _figures(keys: UInt64s, codes: Int64s, seed: int, rule: str) -> dict[str, float]:
    name, options = parse_choice(rule.replace(BY_TIMES_FILE, str(ROOT / BY_TIMES_FILE)))
    partitioner = create(name, workers=DATA_BLOCKS, seed=seed, **options)
    blocks = partitioner.assign_batch(np.ascontiguousarray(keys), np.arange(len(keys)))
    of_key = np.zeros(int(codes.max()) + 1, np.uint64)
    of_key[codes] = keys
    return block_figures(blocks, codes, of_key, seed)


def block_figures(blocks: Int32s, codes: Int64s, of_key: UInt64s, seed: int) -> dict[str, float]:
    """The figures of a batch. blocks, codes: of each tuple, shape (m,). of_key: hashes by code.

    bsi, bci: 001 eq. 2.2 and 2.3, in tuples and keys. split: keys in several data blocks. map, reduce,
    allocated: variances in microseconds squared, the last two of reduce tasks by hash and by Algorithm 3.
    """
    pairs = np.bincount(codes * DATA_BLOCKS + blocks, minlength=len(of_key) * DATA_BLOCKS)
    table = pairs.reshape(-1, DATA_BLOCKS)
    sizes, cardinalities, holders = table.sum(axis=0), (table > 0).sum(axis=0), (table > 0).sum(axis=1)
    prices = unit_costs()
    mapped = prices.tuple * sizes + (prices.make + prices.send) * cardinalities
    hashed, allocated = zip(
        *(_reduced(table, of_key, salt) for salt in salts(_RENAMING + seed, HASHES)), strict=True
    )
    return {
        "bsi": float(sizes.max() - sizes.mean()),
        "bci": float(cardinalities.max() - cardinalities.mean()),
        "split": float((holders > 1).sum()),
        "ksr": float(holders.sum() / (holders > 0).sum()),
        "map": _variance(mapped),
        "reduce": float(np.mean(hashed)),
        "allocated": float(np.mean(allocated)),
    }


def _reduced(table: Int64s, of_key: UInt64s, salt: np.uint64) -> tuple[float, float]:
    """The variance of the reduce tasks, hashed and by Algorithm 3. table: tuples of each key in each data
    block.
    """
    block, code = np.nonzero(table.T)
    keys, sizes = of_key[code] ^ salt, table[code, block]
    split = (table > 0).sum(axis=1)[code] > 1
    clusters = MapOutput(block.astype(np.int32), keys, sizes, split, np.empty(0, np.int64))
    hashed = bucket_of(keys, DATA_BLOCKS)
    return tuple(_task_variance(at, code) for at in (hashed, allocate_all(clusters, DATA_BLOCKS)))  # type: ignore[return-value]


def _task_variance(task: Int32s, code: Int64s) -> float:
    """The variance of reduce tasks. task, code: of each cluster. All clusters of a key have one task."""
    prices = unit_costs()
    rows = np.bincount(task[np.unique(code, return_index=True)[1]], minlength=DATA_BLOCKS)
    received = np.bincount(task, minlength=DATA_BLOCKS)
    return _variance(prices.receive * received + (prices.hold + prices.emit) * rows)


def _variance(ns: Any) -> float:
    return float(np.var(ns / 1e3))


def _kept_rows(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((ROOT / "docs/partly" / name).read_text(encoding="utf-8"))
    return rows


def _training(name: str) -> Values:
    rows = [row for row in _kept_rows("training.json") if row["training"] == name]
    return {figure: [float(row[figure]) for row in rows] for figure in ("steps", "stage", "cost")}


def _times(planner: str) -> Values:
    """What varies, and the time at each of its values, by what is varied."""
    rows = [row for row in _kept_rows("plan.json") if row["partitioner"] == PLANNERS[planner]]
    series: Values = {}
    for over in OVER:
        own = [row for row in rows if row["over"] == over]
        series[f"{over} ms"] = [float(row["batch_ms"]) for row in own]
        series[over] = [float(row[over]) for row in own]
    return series
