"""How evenflow does on a case, against the best of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.own_grid.measuring import full_windows
from benchmarks.refute.cases import Case

OURS = "evenflow"
CHOICES = ("d-choices", "d-choices:head=window")
OTHERS = (*CHOICES, "w-choices:head=window", "pkg", "cam", "dagreedy", "cg")
"""What evenflow is compared with."""
MOST_IMBALANCE = 1e-3
"""Below this imbalance nobody is called worse."""
MOST_TIMES, MOST_REPLICAS = 3.0, 1.3
"""Goals: the imbalance against the best of the others with about as many replicas, and the replicas (KSR)
against those of `d-choices`. About as many are at most 1.3 times ours."""


@dataclass(frozen=True)
class CaseVerdict:
    """How level each partitioner routes a case, and with how many replicas."""

    case: Case
    """The stream that was routed."""
    pairs: dict[str, tuple[float, float]]
    """Partitioner -> imbalance and KSR, as means over the windows that are full."""

    def nearest(self, replicas: float = float("inf")) -> str:
        """The most level of the others with at most so many times our replicas."""
        most = replicas * self.pairs[OURS][1]
        others = {name: pair for name, pair in self.pairs.items() if name != OURS}
        return min(others, key=lambda name: (others[name][1] > most, others[name][0]))

    @property
    def level(self) -> float:
        """Our imbalance in times the best of the others with about as many replicas, or of 1e-3 if that is
        more.
        """
        best, replicas = self.pairs[self.nearest(MOST_REPLICAS)]
        if replicas > MOST_REPLICAS * self.pairs[OURS][1]:
            return 0.0
        return self.pairs[OURS][0] / max(best, MOST_IMBALANCE)

    @property
    def replicas(self) -> float:
        """Our KSR in times that of `d-choices`: of the form with more replicas."""
        return self.pairs[OURS][1] / max(self.pairs[name][1] for name in CHOICES)

    @property
    def badness(self) -> float:
        """1 where a goal is just met, more where one is missed."""
        return max(self.level / MOST_TIMES, self.replicas / MOST_REPLICAS)

    @property
    def by_level(self) -> bool:
        """Whether it is the imbalance that is bad, not the replicas."""
        return self.level / MOST_TIMES > self.replicas / MOST_REPLICAS

    def as_json(self) -> dict[str, Any]:
        """One line of the log."""
        return {
            **self.case.as_json(),
            "level": self.level,
            "replicas": self.replicas,
            "found": {name: list(pair) for name, pair in self.pairs.items()},
        }


def judged(case: Case, tuples: int, names: tuple[str, ...] = (OURS, *OTHERS)) -> CaseVerdict:
    """Route the case's stream through all of them."""
    stream, scenario = case.stream(tuples), case.scenario()
    pairs = {}
    for name in names:
        figures = full_windows(stream, name, scenario)
        pairs[name] = (float(np.mean(figures.imbalance)), float(np.mean(figures.ksr)))
    return CaseVerdict(case, pairs)
