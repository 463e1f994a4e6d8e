"""MBLinUCB (003): LinUCB that has practised on a queue model before it decides (Alg. 1), and goes on learning (Alg. 2).

It needs each part's arrivals and the capacity of one instance. It gets them from its first observations, in which it
changes nothing, or from its options. `breadth=1` practises as the paper does, on that one load. By default it also practises
on half and twice of it and on queues, so that it knows what to do on the day when the load changes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from evenflow.elasticity.agents import Load, read_load
from evenflow.elasticity.observation import PARTS, Observation, Part
from evenflow.elasticity.policies.linucb import LinUCB, LinUCBOptions, in_order
from evenflow.elasticity.policy import Decision, Options
from evenflow.elasticity.pretraining import Lessons, output, train
from evenflow.elasticity.queues import QueueModel, latency_bound, service_rate

_LEAST_SHARE = 0.1
"""Of the latency budget: a part is never asked to be faster than that."""
_MOST_OUT = 1e9
"""Tuples out for one in: more is no measurement."""


class MBLinUCBOptions(LinUCBOptions):
    """Options of `mblinucb`."""

    alpha: float = Field(
        default=0.3, ge=0, le=100, description="How much an arm is worth that is little known (003: 1)."
    )
    watch: int = Field(
        default=5, ge=1, le=10_000, description="Observations that say what comes, before practising."
    )
    rate: float | None = Field(
        default=None, gt=0, description="Tuples/s that come to the combiner. None: as observed."
    )
    mu: float | None = Field(default=None, gt=0, description="Tuples/s of one instance. None: as observed.")
    selectivity: float | None = Field(
        default=None, gt=0, description="Tuples out for each one in (psi) of the combiner. None: as observed."
    )
    samples: int = Field(
        default=2_000, ge=1, le=1_000_000, description="Simulated steps for each part (003: 10000)."
    )
    breadth: float = Field(
        default=2.0,
        ge=1,
        le=100,
        description="Practised rates reach from 1/breadth to breadth times the known one.",
    )
    model: Literal["mm1", "gg1"] = Field(
        default="mm1", description="Queue: exponential times (mm1), or as the two options below say (gg1)."
    )
    arrival_cv: float = Field(
        default=1.0, ge=0, le=10, description="gg1: standard deviation over mean of the gaps between tuples."
    )
    service_cv: float = Field(default=1.0, ge=0, le=10, description="gg1: the same of service times.")


class MBLinUCB(LinUCB):
    """LinUCB that practises on a queue model first (003)."""

    options_type: ClassVar[type[Options]] = MBLinUCBOptions
    options: MBLinUCBOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._watched: list[dict[Part, Load]] = []
        self._practised: list[Part] = []
        self._shares: dict[Part, float] = {}
        """Of the latency budget, as measured. empty: evenly."""

    def _choice(self, seen: Observation, loads: dict[Part, Load]) -> Decision:
        if set(loads) - set(self._practised):
            if any(load.arrivals for load in loads.values()):
                self._watched.append(loads)
            wanted = 1 if self.options.rate and self.options.mu else self.options.watch
            if len(self._watched) < wanted:
                return self._held(seen, f"watching what comes: {len(self._watched)} of {wanted} observations")
            self._practise(seen)
        return super()._choice(seen, loads)

    def _practise(self, seen: Observation) -> None:
        loads = self._known()
        self._shares = self._profile(seen, loads)
        lessons, arriving = self._lessons(seen), None
        for number, (part, load) in enumerate(loads.items()):
            if arriving is not None:
                load = Load(arrivals=arriving, mu=load.mu, queue=0)
            agent, objective = self._agents[part], self._objective(part, seen)
            if part not in self._practised:
                train(agent, load, objective, lessons, np.random.default_rng([self.seed, number]))
                self._practised.append(part)
            arriving = output(agent, load, objective, self._selectivity(loads))
        self._watched = []

    def _lessons(self, seen: Observation) -> Lessons:
        options = self.options
        times = {"arrival_cv": options.arrival_cv, "service_cv": options.service_cv}
        return Lessons(
            samples=options.samples,
            model=QueueModel(**times) if options.model == "gg1" else QueueModel(),
            length_s=seen.interval_ms * options.every / 1000,
            breadth=options.breadth,
        )

    def _known(self) -> dict[Part, Load]:
        """The mean load of each part, in the order in which tuples pass them. Options come before what was observed."""
        found: dict[Part, Load] = {}
        for part in PARTS:
            there = [loads[part] for loads in self._watched if part in loads]
            if there:
                rate = self.options.rate if part == "combine" else None
                arrivals = rate or float(np.mean([load.arrivals for load in there]))
                found[part] = Load(arrivals=arrivals, mu=self.options.mu or there[-1].mu, queue=0)
        return found

    def _selectivity(self, loads: dict[Part, Load]) -> float:
        if self.options.selectivity is not None:
            return self.options.selectivity
        rates = [loads[part].arrivals for part in PARTS if part in loads]
        each = rates[-1] / rates[0] if rates[0] else 1.0
        return each if each <= _MOST_OUT else 1.0

    def _profile(self, seen: Observation, loads: dict[Part, Load]) -> dict[Part, float]:
        """Eq. 3: each part's share of the latency bound with the instances in force. Even when one is not stable."""
        bounds = {}
        for part, instances in zip(PARTS, (seen.p, seen.r), strict=True):
            if part in loads:
                service = service_rate(instances, mu=loads[part].mu, rho=self.options.rho)
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
        kept = {"watched": watched, "practised": self._practised, "shares": self._shares}
        return super()._state() | kept

    def _load_state(self, state: dict[str, Any]) -> None:
        super()._load_state(state)
        self._watched = [
            {part: read_load(loads[part]) for part in PARTS if part in loads} for loads in state["watched"]
        ]
        self._practised = [PARTS[PARTS.index(part)] for part in state["practised"]]
        self._shares = in_order(state["shares"])
        if self._shares.keys() not in (set(), set(PARTS)):
            raise ValueError(f"no shares of both parts: {state['shares']}")
