"""How good a policy is on batches that it was not trained on, beside Prompt on the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenflow.partitioners.partly.network import TrainedPolicy
from evenflow.partitioners.partly.planner import plan_batch, plan_cost, plan_variances
from evenflow.partitioners.partly.task_times import Prices, Scale
from evenflow.partitioners.prompt.data_blocks import plan_data_blocks
from evenflow.training.batches import BatchLaw, TrainingBatch

_END, _LEAST_EXCESS = 0.95, 1e-12
_SEED = 1_000_003
"""Of the batches that are held out. Training draws from other seeds (`learner`)."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """Means over batches."""

    cost: float
    """Cost of the plans (`partly.cost`)."""
    splits: float
    """Split keys of a batch."""
    better: float
    """Share of the batches that the policy plans at a lower cost than Prompt."""
    excess: float | None
    """Mean excess of the variance of task times (`partly.task_times`). None without prices."""


def held_out(law: BatchLaw, number: int) -> list[TrainingBatch]:
    """So many batches of the law, always the same."""
    rng = np.random.default_rng(_SEED)
    return [law.draw(rng) for _ in range(number)]


def score(
    policy: TrainedPolicy,
    batches: Sequence[TrainingBatch],
    prompt: Sequence[float],
    prices: Prices | None = None,
) -> Score:
    """The score of a policy on these batches. prompt: what Prompt's plan of each batch costs.
    prices: of tasks.
    """
    costs, splits, excesses = [], [], []
    for counts, data_blocks in batches:
        plan = plan_batch(counts, data_blocks, policy)
        costs.append(plan_cost(counts, plan, data_blocks))
        splits.append(plan.split)
        if prices is not None:
            excesses.append(plan_variances(counts, plan, data_blocks, prices).excess)
    better = np.mean(np.array(costs) < np.array(prompt))
    return Score(
        cost=float(np.mean(costs)),
        splits=float(np.mean(splits)),
        better=float(better),
        excess=float(np.mean(excesses)) if excesses else None,
    )


def scale_of(batches: Sequence[TrainingBatch], prices: Prices) -> Scale:
    """From the excess that Prompt's plans of these batches have to what they cost.

    The most of both is the 95th percentile, because single batches are far out.
    """
    costs, excesses = [], []
    for counts, data_blocks in batches:
        plan = plan_data_blocks(counts, data_blocks)
        costs.append(plan_cost(counts, plan, data_blocks))
        excesses.append(plan_variances(counts, plan, data_blocks, prices).excess)
    most, most_cost = (float(np.quantile(values, _END)) for values in (excesses, costs))
    return Scale(max(most, _LEAST_EXCESS), min(costs), most_cost)


def prompt_costs(batches: Sequence[TrainingBatch]) -> tuple[list[float], list[int]]:
    """For each batch: the cost of Prompt's plan, as in the paper, and how many keys it splits."""
    plans = [plan_data_blocks(counts, data_blocks) for counts, data_blocks in batches]
    costs = [plan_cost(counts, plan, blocks) for (counts, blocks), plan in zip(batches, plans, strict=True)]
    return costs, [plan.split for plan in plans]
