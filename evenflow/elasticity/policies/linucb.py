"""LinUCB (003): a contextual bandit for each part, which begins without any knowledge.

The combiner's agent chooses p, and the reducer's agent chooses r. Each agent has to try a parallelism before
it knows how good it is, also one that overloads the part. (`mblinucb` tries them in a simulation.) The reward
is computed from the next observation. The latency bound, the queue and the units used count a third each,
unless the options say otherwise. In the fused wiring the parts take turns, so a part's capacity counts for
its share of the time only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from evenflow.elasticity.learning.agents import Agent, Load, is_amount
from evenflow.elasticity.observation import PARTS, Observation, Part, is_known
from evenflow.elasticity.policy import Decision, Policy
from evenflow.elasticity.simulated.objective import Form, Objective
from evenflow.text.options import Options

_INTERVALS = 4
"""Batch intervals that a part may take by default: one to wait, one to be worked on, and two to spare."""
_NEW = 0.3
"""Weight of a newly measured capacity in the running mean."""


class LinUCBOptions(Options):
    """Options of `linucb`."""

    objective: Form = Field(
        default="paper",
        description=(
            "Form of the reward: paper (003, eq. 9), linear (latency counts by its length), or backlog (ours:"
            " the penalty grows with what waits, and nothing scales in while a backlog drains)."
        ),
    )
    alpha: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="Weight of exploring: how much an agent favours a little-tried number.",
    )
    rho: float = Field(default=0.9, ge=0, le=1, description="Share of the work that is parallel (Gustafson).")
    lmax_ms: float | None = Field(
        default=None,
        gt=0,
        description=(
            "Latency allowed over all parts, ms (003's simulation: 1000)."
            " None: 4 batch intervals for each part."
        ),
    )
    share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Share of the allowed latency that the combiner gets. None: half.",
    )
    omega_max: float | None = Field(
        default=None,
        ge=0,
        description="Tuples that may wait. None: as many as arrive within the latency allowed.",
        json_schema_extra={"unit": "tuples"},
    )
    w_lat: float = Field(default=1 / 3, ge=0, le=1, description="Weight of latency in the reward.")
    w_que: float = Field(default=1 / 3, ge=0, le=1, description="Weight of the queue in the reward.")
    w_res: float = Field(default=1 / 3, ge=0, le=1, description="Weight of the units used in the reward.")
    every: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Observations from one decision to the next.",
        json_schema_extra={"unit": "observations"},
    )


class LinUCB(Policy):
    """One contextual bandit for each of p and r, which begins without any knowledge (003)."""

    options_type: ClassVar[type[Options]] = LinUCBOptions
    needs: ClassVar[tuple[str, ...]] = ()
    options: LinUCBOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        allowed, options = self.bounds, self.options
        ranges = ((allowed.p_min, allowed.p_max), (allowed.r_min, allowed.r_max))
        self._agents: dict[Part, Agent] = {
            part: Agent(least=least, most=most, rho=options.rho, alpha=options.alpha, form=options.objective)
            for part, (least, most) in zip(PARTS, ranges, strict=True)
        }
        self._mu: dict[Part, float] = {}
        self._arrivals: dict[Part, float] = {}
        self._observations = 0

    def _decide(self, observation: Observation) -> Decision:
        loads = self._loads(observation)
        if not loads:
            self._forget()
            return self._no_decision(
                observation, "nothing is decided: arrivals, capacity or queue of every part is not known"
            )
        if loads.keys() != self._arrivals.keys():  # other parts are known than before: their means begin anew
            self._begin_anew()
        self._observations += 1
        self._arrivals = {part: self._arrivals.get(part, 0.0) + load.arrivals for part, load in loads.items()}
        if self._observations < self.options.every:
            return Decision(
                p=observation.p,
                r=observation.r,
                reason=f"observation {self._observations} of {self.options.every} before a decision",
                cause="waiting",
            )
        loads = {part: self._averaged(part, load) for part, load in loads.items()}
        self._begin_anew()
        return self._choice(observation, loads)

    def _choice(self, observation: Observation, loads: dict[Part, Load]) -> Decision:
        """Let each agent learn from the outcome of its last choice, and then choose again."""
        chosen = {"combine": observation.p, "reduce": observation.r}
        # Only `backlog` heeds it: under the other forms a bandit learns by its reward alone, as in 003.
        drains = observation.draining and self.options.objective == "backlog"
        why = ["a backlog drains, so nothing scales in"] if drains else []
        for part in PARTS:
            if part not in loads:
                self._agents[part].forget_choice()
        for part, load in loads.items():
            agent, objective = self._agents[part], self._objective(part, observation)
            agent.judge(chosen[part], load, objective)
            chosen[part] = agent.choose(load, objective, least=chosen[part] if drains else None)
            agent.await_outcome(load)
            why.append(f"{part}: {agent.explanation(chosen[part], load, objective)}")
        return Decision(p=chosen["combine"], r=chosen["reduce"], reason="; ".join(why), cause="reward")

    def _missed(self, observation: Observation) -> None:
        self._begin_anew()
        if observation.stale:
            self._forget()
            return
        # While a plan settles, its starting point moves on: it is judged from the state in which it takes
        # over.
        for part, load in self._loads(observation).items():
            self._agents[part].move_on(load)

    def _forget(self) -> None:
        self._begin_anew()
        for agent in self._agents.values():
            agent.forget_choice()

    def _begin_anew(self) -> None:
        self._observations, self._arrivals = 0, {}

    def _averaged(self, part: Part, load: Load) -> Load:
        return Load(arrivals=self._arrivals[part] / self._observations, mu=load.mu, queue=load.queue)

    def _loads(self, observation: Observation) -> dict[Part, Load]:
        """The loads of the parts of which arrivals, capacity and queue are known."""
        loads: dict[Part, Load] = {}
        for part, units in zip(PARTS, (observation.p, observation.r), strict=True):
            stage = observation.stage(part)
            capacity = stage.capacity * _time_share(observation, part) if is_known(stage.capacity) else None
            mu = self._one_does(part, capacity, units)
            if mu is not None and is_amount(stage.arrivals) and is_amount(stage.queue):
                loads[part] = Load(arrivals=stage.arrivals, mu=mu, queue=stage.queue)
        return loads

    def _one_does(self, part: Part, capacity: float | None, units: int) -> float | None:
        """Tuples/s of one unit, as a running mean. Without a new measurement, the mean so far (or None)."""
        if is_amount(capacity) and capacity:
            # Gustafson's law (`queues.service_rate`) solved for the rate of one unit.
            unit_rate = capacity / (1 - self.options.rho + self.options.rho * units)
            self._mu[part] = self._mu.get(part, unit_rate) * (1 - _NEW) + unit_rate * _NEW
        return self._mu.get(part)

    def _objective(self, part: Part, observation: Observation) -> Objective:
        options, agent = self.options, self._agents[part]
        whole = options.lmax_ms or _INTERVALS * len(self._mu) * observation.interval_ms
        return Objective(
            latency_s=whole * self._share(part) / 1000,
            most_units=agent.most,
            most_queue=options.omega_max,
            weights=(options.w_lat, options.w_que, options.w_res),
            form=options.objective,
            step_s=observation.interval_ms * options.every / 1000,
        )

    def _share(self, part: Part) -> float:
        """The part's share of the latency budget. If only one part was ever known, it gets the whole
        budget.
        """
        if len(self._mu) == 1:
            return 1.0
        combiner = 0.5 if self.options.share is None else self.options.share
        return combiner if part == "combine" else 1 - combiner

    # ---- state

    def _state(self) -> dict[str, Any]:
        return {
            "agents": {part: agent.state() for part, agent in self._agents.items()},
            "mu": in_order(self._mu),
            "came": in_order(self._arrivals),
            "seen": self._observations,
        }

    def _load_state(self, state: dict[str, Any]) -> None:
        if set(state) != set(self._state()):
            raise ValueError("it has other fields")
        for part, agent in self._agents.items():
            agent.load_state(state["agents"][part])
        self._mu, self._arrivals = in_order(state["mu"]), in_order(state["came"])
        self._observations = int(state["seen"])
        if 0.0 in self._mu.values() or self._observations < 0:
            raise ValueError("a capacity of nothing, or less than no observations")


def _time_share(observation: Observation, part: Part) -> float:
    """The share of the time that a part has.
    In the fused wiring the parts take turns, so it can do less than its capacity.

    It is the part's own W over the W of the application, or 1 where they are not known.
    """
    own, whole = observation.stage(part).load, observation.load
    if observation.wiring == "split" or not is_known(own) or not is_known(whole) or not 0 < own < whole:
        return 1.0
    return own / whole


def in_order(amounts: Mapping[Part, Any]) -> dict[Part, float]:
    """The amounts in the order of PARTS, whatever order they come in.

    Raises ValueError or TypeError for a value that is no amount: a number from 0 to 1e100.
    """
    ordered_amounts = {part: float(amounts[part]) for part in PARTS if part in amounts}
    if not all(map(is_amount, ordered_amounts.values())):
        raise ValueError(f"no amounts: {ordered_amounts}")
    return ordered_amounts
