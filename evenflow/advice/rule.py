"""How a partitioner is chosen: the selection rule of 004,
and the cost model of 004 applied to simulated figures.

004 minimises the load of the fullest worker under the constraint that the aggregation cost Gamma stays below
this load (its equation 3). It sums up its experiments in a rule: shuffle for few and constant groups,
affinity otherwise. Here one figure joins both sides of equation 3, so that candidates can be ranked even if
none meets the constraint. (With more groups than a worker has tuples, not even hashing meets it.)

    cost = (tuples of the fullest worker + merge_cost x (Gamma - keys)) / (tuples / workers)

A cost of 1 is perfect: every worker has the fair share, and no key is split. Gamma - keys is the number of
partials that exist only because keys are split. The first partial of each key is left out, because every
partitioner needs it. The rule of 004 follows from this cost: with g groups, shuffling costs at most 1 + g (n
- 1) / (tuples / n), which is close to 1 only for few groups.

If tuples have costs, the first term is the work of the fullest worker over the mean work, and merging one
partial is `merge_cost` times the work of a tuple of mean cost. Only candidates that weigh tuples are
considered then.

The cost of a candidate is the cost with its worst hash seed, because luck with one placement ends with the
next change of workers. The candidates are ordered, simpler ones first. The choice is the first candidate that
costs at most (1 + tolerance) x the least cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evenflow.advice.candidates import Candidate
from evenflow.partitioners.base import KeyPolicy
from evenflow.simulation.results import Figures

FEW_GROUPS = 0.1
"""Groups are few if they are at most this share of a worker's tuples in a window (004: "significantly
less").
"""
NEW_GROUPS = 0.05
"""Groups are constant if at most this share of them appears in the second half of the sample only."""


@dataclass(frozen=True, kw_only=True)
class PaperRule:
    """What the selection rule of 004 says, and the figures that it rests on."""

    verdict: Literal["splitting", "affinity"]
    """Whether keys should be split over workers, or each stay at one."""
    groups: float
    """Distinct keys of a window."""
    tuples_per_worker: float
    """Tuples of a window that a worker gets on average."""
    new_share: float
    """Share of the keys that occur only in the second half of the sample."""

    @property
    def few(self) -> bool:
        """Whether there are significantly fewer groups than tuples at a worker."""
        return self.groups <= FEW_GROUPS * self.tuples_per_worker

    @property
    def constant(self) -> bool:
        """Whether there are hardly any new groups."""
        return self.new_share <= NEW_GROUPS


def paper_rule(*, groups: float, tuples_per_worker: float, new_share: float) -> PaperRule:
    """The selection rule of 004, section 7: shuffle for few and constant groups, otherwise affinity."""
    few = groups <= FEW_GROUPS * tuples_per_worker and new_share <= NEW_GROUPS
    return PaperRule(
        verdict="splitting" if few else "affinity",
        groups=groups,
        tuples_per_worker=tuples_per_worker,
        new_share=new_share,
    )


@dataclass(frozen=True, kw_only=True)
class CandidateFigures:
    """A candidate and its figures on the sample.

    cost and slowest_worker are those of the worst hash seed. The other figures are those of the pipeline's
    own seed.
    """

    partitioner: str
    """The candidate as it is written: a name, with options behind it."""
    family: KeyPolicy
    """Whether the candidate hashes, keeps keys together or splits them."""
    considered: bool
    """Whether it may be chosen. A candidate that splits every key may be only if the rule of 004 asks for
    that. If tuples have costs, one that does not weigh them may not."""
    cost: float
    """See the module."""
    slowest_worker: float
    """Load of the fullest worker over the mean load, as a mean over windows."""
    window_imbalance: float
    """(max load - mean load) / all loads, as a mean over windows. Without a window, the sample is one
    window.
    """
    gamma: float
    """Distinct (key, worker) pairs of a window."""
    distinct: float
    """Distinct keys of a window."""
    ksr: float
    """Gamma / distinct: replication factor."""
    max_holders: float
    """Workers that hold the most split key."""
    ns_per_tuple: float
    """Processor time inside `assign` per tuple, in ns: the least of the runs."""
    weighs: bool | None = None
    """Whether it weighs tuples by their costs. None if tuples have no costs."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON, in their order. `weighs` is left out if tuples have no costs."""
        return {name: value for name, value in asdict(self).items() if name != "weighs" or value is not None}


def judged(
    candidate: Candidate,
    figures: Sequence[Figures],
    *,
    window_tuples: float,
    merge_cost: float,
    few_groups: bool,
) -> CandidateFigures:
    """The candidate with its cost. figures: one for each hash seed, that of the pipeline's own seed first."""
    own = figures[0]
    fair = window_tuples / own.workers
    return CandidateFigures(
        partitioner=candidate.text,
        family=candidate.family,
        considered=(few_groups or not candidate.few_groups_only) and own.weighs is not False,
        cost=max(_slowest(run) + merge_cost * (run.gamma - run.distinct) / fair for run in figures),
        slowest_worker=max(map(_slowest, figures)),
        window_imbalance=_imbalance(own),
        gamma=own.gamma,
        distinct=own.distinct,
        ksr=own.ksr,
        max_holders=own.max_holders,
        ns_per_tuple=min(run.ns_per_tuple for run in figures),
        weighs=own.weighs,
    )


def chosen(tried: Sequence[CandidateFigures], *, tolerance: float) -> CandidateFigures:
    """The first candidate that costs at most (1 + tolerance) x the least cost.

    Only candidates that are considered count, or all if none is considered.
    """
    pool = [candidate for candidate in tried if candidate.considered] or list(tried)
    limit = (1 + tolerance) * min(candidate.cost for candidate in pool)
    # The simpler candidates come first, so this is the simplest one that is cheap enough.
    return next(candidate for candidate in pool if candidate.cost <= limit)


def _imbalance(figures: Figures) -> float:
    return figures.imbalance if figures.window_imbalance is None else figures.window_imbalance


def _slowest(figures: Figures) -> float:
    # imbalance = max load / tuples - 1 / workers, solved for max load / (tuples / workers)
    return 1 + figures.workers * _imbalance(figures)
