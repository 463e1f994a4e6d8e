"""How a partitioner is chosen: the selection rule of 004, and the cost model of 004 applied to simulated figures.

004 minimises the load of the fullest worker while the aggregation cost Gamma stays below that load (its equation
3), and sums up its experiments in a rule: few and constant groups, then shuffle. Otherwise affinity. Here both
sides of equation 3 are one figure, so that candidates can be ranked also where none meets the constraint (with
more groups than a worker has tuples not even hashing does):

    cost = (tuples of the fullest worker + merge_cost x (Gamma - keys)) / (tuples / workers)

1 is perfect: everyone has the fair share and no key is split. Gamma - keys are the partial results that exist only
because keys are split. A key's one result has to be put out whatever the partitioner does. The rule of 004 falls
out of it: with g groups shuffling costs at most 1 + g (n - 1) / (tuples / n), which is next to 1 for few groups only.

The cost of a candidate is that of its worst hash seed: luck with one placement ends with the next change of
workers. Chosen is the first candidate (they are ordered: simpler ones first) that costs at most (1 + tolerance) x
the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenflow.advice.candidates import Candidate
from evenflow.partitioners.base import KeyPolicy
from evenflow.simulation.results import Figures

FEW_GROUPS = 0.1
"""Groups are few when they are at most so many times the tuples of a worker and window ("significantly less")."""
NEW_GROUPS = 0.05
"""Groups are constant when at most this share of them appears in the second half of the sample only."""


@dataclass(frozen=True, kw_only=True)
class PaperRule:
    """What the selection rule of 004 says, and of which figures."""

    says: Literal["splitting", "affinity"]
    groups: float
    """Distinct keys of a window."""
    tuples_per_worker: float
    """Tuples of a window that a worker gets on average."""
    new_share: float
    """Of the keys of the sample, those that occur in its second half only."""

    @property
    def few(self) -> bool:
        """Significantly fewer groups than tuples of a worker."""
        return self.groups <= FEW_GROUPS * self.tuples_per_worker

    @property
    def constant(self) -> bool:
        """Hardly any new groups."""
        return self.new_share <= NEW_GROUPS


def paper_rule(*, groups: float, tuples_per_worker: float, new_share: float) -> PaperRule:
    """004, section 7: shuffle for few and constant groups, otherwise affinity."""
    few = groups <= FEW_GROUPS * tuples_per_worker and new_share <= NEW_GROUPS
    return PaperRule(
        says="splitting" if few else "affinity",
        groups=groups,
        tuples_per_worker=tuples_per_worker,
        new_share=new_share,
    )


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate and its figures on the sample, but for cost and slowest_worker with the pipeline's own seed."""

    partitioner: str
    family: KeyPolicy
    considered: bool
    """False: it splits every key, and the rule of 004 does not ask for that."""
    cost: float
    """See the module. Of the worst hash seed."""
    slowest_worker: float
    """Tuples of the fullest worker / mean over the workers, mean over windows. Of the worst hash seed."""
    window_imbalance: float
    """(max load - mean load) / tuples, mean over windows. Without a window the sample is one."""
    gamma: float
    """Distinct (key, worker) pairs of a window."""
    distinct: float
    """Distinct keys of a window."""
    ksr: float
    """Gamma / distinct: replication factor."""
    max_holders: float
    """Workers that hold the most split key."""
    ns_per_tuple: float
    """Processor time inside `assign`, the least of the runs."""


def judged(
    candidate: Candidate,
    figures: Sequence[Figures],
    *,
    window_tuples: float,
    merge_cost: float,
    few_groups: bool,
) -> Tried:
    """A candidate by its figures, one for each hash seed, the pipeline's own first."""
    own = figures[0]
    fair = window_tuples / own.workers
    return Tried(
        partitioner=candidate.text,
        family=candidate.family,
        considered=few_groups or not candidate.few_groups_only,
        cost=max(_slowest(one) + merge_cost * (one.gamma - one.distinct) / fair for one in figures),
        slowest_worker=max(map(_slowest, figures)),
        window_imbalance=_imbalance(own),
        gamma=own.gamma,
        distinct=own.distinct,
        ksr=own.ksr,
        max_holders=own.max_holders,
        ns_per_tuple=min(one.ns_per_tuple for one in figures),
    )


def chosen(tried: Sequence[Tried], *, tolerance: float) -> Tried:
    """The first one that costs at most (1 + tolerance) x the least, of those considered (or of all, if none is)."""
    pool = [one for one in tried if one.considered] or list(tried)
    limit = (1 + tolerance) * min(one.cost for one in pool)
    return next(one for one in pool if one.cost <= limit)


def _imbalance(figures: Figures) -> float:
    return figures.imbalance if figures.window_imbalance is None else figures.window_imbalance


def _slowest(figures: Figures) -> float:
    return 1 + figures.workers * _imbalance(figures)
