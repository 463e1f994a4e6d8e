"""MBLinUCB (003): LinUCB that practises on a queue model before it decides (Alg. 1), and then goes on
learning (Alg. 2).

To practise, MBLinUCB needs each part's arrivals and the capacity of one unit. It takes both from its first
observations, during which it changes nothing, or from its options. With `breadth=1` it practises as the paper
does, on this one load. By default it also practises on rates from half to twice this load, and on queues. So
it knows what to do when the load changes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from evenflow.elasticity.learning.agents import Load, read_load
from evenflow.elasticity.learning.pretraining import Lessons, Pupil, pretrain
from evenflow.elasticity.observation import PARTS, Observation, Part
from evenflow.elasticity.policies.linucb import LinUCB, LinUCBOptions, in_order
from evenflow.elasticity.policy import Decision
from evenflow.elasticity.simulated.objective import Form
from evenflow.elasticity.simulated.queues import QueueModel, latency_bound, service_rate
from evenflow.text.options import Options

_LEAST_SHARE = 0.1
"""Smallest share of the latency budget that a measured profile gives to a part."""
_MOST_OUT = 1e9
"""Largest credible selectivity, in tuples out for one in. A larger one is taken for a wrong measurement."""


class MBLinUCBOptions(LinUCBOptions):
    """Options of `mblinucb`."""

    objective: Form = Field(
        default="backlog",
        description=(
            "Form of the reward: backlog (ours: the penalty grows with what waits, and nothing scales in"
            " while a backlog drains), paper (003, eq. 9), or linear (latency counts by its length)."
        ),
    )
    alpha: float = Field(
        default=0.3,
        ge=0,
        le=100,
        description="Weight of exploring: how much an agent favours a little-tried number (003: 1).",
    )
    watch: int = Field(
        default=5,
        ge=1,
        le=10_000,
        description="Observations to watch the load before practising.",
        json_schema_extra={"unit": "observations"},
    )
    rate: float | None = Field(
        default=None,
        gt=0,
        description="Tuples/s that arrive at the combiner. None: as observed.",
        json_schema_extra={"unit": "tuples/s"},
    )
    mu: float | None = Field(
        default=None,
        gt=0,
        description="Tuples/s of one unit. None: as observed.",
        json_schema_extra={"unit": "tuples/s"},
    )
    selectivity: float | None = Field(
        default=None,
        gt=0,
        description="Tuples out for each tuple in (psi) of the combiner. None: as observed.",
    )
    samples: int = Field(
        default=2_000,
        ge=1,
        le=1_000_000,
        description="Simulated steps for each part (003: 10000).",
        json_schema_extra={"unit": "simulated steps"},
    )
    breadth: float = Field(
        default=2.0,
        ge=1,
        le=100,
        description="Practised rates reach from 1/breadth to breadth times the known one.",
    )
    model: Literal["mm1", "gg1"] = Field(
        default="mm1",
        description="Queue model: exponential times (mm1), or times as the next two options say (gg1).",
    )
    arrival_cv: float = Field(
        default=1.0, ge=0, le=10, description="gg1: standard deviation over mean of the gaps between tuples."
    )
    service_cv: float = Field(
        default=1.0, ge=0, le=10, description="gg1: standard deviation over mean of the service times."
    )


class MBLinUCB(LinUCB):
    """LinUCB that practises on a queue model first (003)."""

    options_type: ClassVar[type[Options]] = MBLinUCBOptions
    options: MBLinUCBOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._watched: list[dict[Part, Load]] = []
        self._practised: list[Part] = []
        self._shares: dict[Part, float] = {}
        """Measured share of the latency budget for each part. Empty: the shares of `LinUCB`."""

    def _choice(self, observation: Observation, loads: dict[Part, Load]) -> Decision:
        if set(loads) - set(self._practised):
            if any(load.arrivals for load in loads.values()):  # an idle pipeline does not show its load
                self._watched.append(loads)
            # Even with both options one observation is needed: it says which parts there are.
            observations_needed = 1 if self.options.rate and self.options.mu else self.options.watch
            if len(self._watched) < observations_needed:
                return self._no_decision(
                    observation,
                    f"watching what comes: {len(self._watched)} of {observations_needed} observations",
                )
            self._practise(observation)
        return super()._choice(observation, loads)

    def _practise(self, observation: Observation) -> None:
        """Train every part's agent that has not practised, in the order
        in which tuples pass the parts (Alg. 1).
        """
        loads = self._mean_loads()
        self._shares = self._profile(observation, loads)
        selectivity = self._selectivity(loads)
        pupils: dict[str, Pupil] = {
            part: Pupil(
                agent=self._agents[part],
                load=load,
                objective=self._objective(part, observation),
                selectivity=selectivity,
                trained=part in self._practised,
            )
            for part, load in loads.items()
        }
        pretrain(pupils, tuple(pairwise(loads)), self._lessons(observation), seed=self.seed)
        self._practised += [part for part in loads if part not in self._practised]
        self._watched = []

    def _lessons(self, observation: Observation) -> Lessons:
        options = self.options
        times = {"arrival_cv": options.arrival_cv, "service_cv": options.service_cv}
        return Lessons(
            samples=options.samples,
            model=QueueModel(**times) if options.model == "gg1" else QueueModel(),
            length_s=observation.interval_ms * options.every / 1000,
            breadth=options.breadth,
        )

    def _mean_loads(self) -> dict[Part, Load]:
        """The mean load of each part, in the order in which tuples pass the parts.
        Options override observations.
        """
        mean_loads: dict[Part, Load] = {}
        for part in PARTS:
            part_loads = [loads[part] for loads in self._watched if part in loads]
            if part_loads:
                rate = self.options.rate if part == "combine" else None
                arrivals = rate or float(np.mean([load.arrivals for load in part_loads]))
                mean_loads[part] = Load(arrivals=arrivals, mu=self.options.mu or part_loads[-1].mu, queue=0)
        return mean_loads

    def _selectivity(self, loads: dict[Part, Load]) -> float:
        if self.options.selectivity is not None:
            return self.options.selectivity
        rates = [loads[part].arrivals for part in PARTS if part in loads]
        each = rates[-1] / rates[0] if rates[0] else 1.0
        return each if each <= _MOST_OUT else 1.0

    def _profile(self, observation: Observation, loads: dict[Part, Load]) -> dict[Part, float]:
        """Eq. 3: each part's share of the latency bound, with the units in force.

        Empty when there is no profile: the option `share` is set, fewer than two parts are known, or one is
        not stable.
        """
        bounds = {}
        for part, units in zip(PARTS, (observation.p, observation.r), strict=True):
            if part in loads:
                service = service_rate(units, mu=loads[part].mu, rho=self.options.rho)
                bounds[part] = latency_bound(loads[part].arrivals, service, 0)
        whole = sum(bounds.values())
        if self.options.share is not None or len(bounds) < 2 or not np.isfinite(whole):
            return {}
        combiner = min(max(bounds["combine"] / whole, _LEAST_SHARE), 1 - _LEAST_SHARE)
        return {"combine": combiner, "reduce": 1 - combiner}

    def _share(self, part: Part) -> float:
        if len(self._mu) > 1 and self._shares:
            return self._shares[part]
        return super()._share(part)

    # ---- state

    def _state(self) -> dict[str, Any]:
        watched = [{part: vars(load) for part, load in loads.items()} for loads in self._watched]
        practice = {"watched": watched, "practised": self._practised, "shares": self._shares}
        return super()._state() | practice

    def _load_state(self, state: dict[str, Any]) -> None:
        super()._load_state(state)
        self._watched = [
            {part: read_load(loads[part]) for part in PARTS if part in loads} for loads in state["watched"]
        ]
        # `index` raises ValueError for anything that is no part.
        self._practised = [PARTS[PARTS.index(part)] for part in state["practised"]]
        self._shares = in_order(state["shares"])
        if self._shares.keys() not in (set(), set(PARTS)):
            raise ValueError(f"no shares of both parts: {state['shares']}")
