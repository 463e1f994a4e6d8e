"""ContTune: doubles until the pipeline keeps up, and then takes what it has learned to be enough (baseline).

* Big phase: under backpressure (W above 1, or a backlog drains) every part's units double. So a bottleneck
  behind another one is not met only after it.
* Small phase: once the pipeline keeps up, or when a part's W is below `low`, each part goes to the fewest
  units whose capacity is enough for what arrives, divided by `target`. The capacity of each number of units
  is the mean of a Gaussian process over those that were measured. If no measured number lies within `alpha`
  of the answer, it is not trusted, and the part goes where DS2 would go: to arrivals / (`target` * capacity
  of one unit).
* The last five capacities measured at a number of units count, by their mean. They stay valid when the load
  changes, so ContTune gets better with every tuning.

What was decided here:

* The length scale of the Gaussian process (squared exponential kernel) is the most likely of twelve. The
  authors' code minimises with scipy. Fewer than three measured numbers have the code's first guess, 4.37.
* The paper takes a capacity that just equals what arrives. With random arrivals such a part falls behind at
  once, so `target` is 0.8. `target=1` is the paper's.
* Thresholds of the controller, and how long it waits to see a change, could not be had. The paper's listing
  of the Big phase could not be had either, only its description.

State: the capacities measured at up to 64 numbers of units, for each part. Source: Lian et al., "ContTune:
Continuous Tuning by Conservative Bayesian Optimization for Distributed Stream Data Processing Systems", PVLDB
16(13), 2023, and the authors' repository (README, `code/GPofContTune.py`).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import PARTS, Observation, Part, is_known
from evenflow.elasticity.policy import Cause, Count, Decision, Policy, restored
from evenflow.elasticity.recommended import steps_in, whole_above
from evenflow.numeric.arrays import Float64s
from evenflow.text.options import Options

_RECENT = 5
"""Capacities that count at one number of units (the authors' README)."""
_MOST_NUMBERS = 64
_FIRST_GUESS = 4.37
_LENGTHS = np.geomspace(1, 64, 12)
"""Length scales that are tried, in units of p or r."""
_NOISE = 1e-4
"""Variance of a measured capacity, as a share of the variance of the process."""
_MOST = 1e100


class ContTuneOptions(Options):
    """Options of `conttune`."""

    target: float = Field(default=0.8, gt=0, le=1, description="Utilisation to keep (ContTune: 1).")
    alpha: int = Field(
        default=3,
        ge=0,
        le=4_096,
        description="An answer further than this from every measured number is DS2's (ContTune: 3, and 0).",
        json_schema_extra={"unit": "units of p or r"},
    )
    low: float = Field(
        default=0.5, ge=0, lt=1, description="A part's W below this starts the Small phase (ours)."
    )
    wait_s: float = Field(
        default=30, ge=0, le=86_400, description="No action within this time of a change, s (ours)."
    )


class _Measurement(NamedTuple):
    """What was measured at one number of units. In a snapshot it is a list."""

    units: Count
    """The part's parallelism during the measurements."""
    capacities: list[float]
    """The part's capacities at that parallelism, tuples/s, newest last."""


class _ContTuneMemory(BaseModel):
    """What ContTune remembers."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    p: Count = 0
    """Routed partitions at the last observation, 0 before the first."""
    r: Count = 0
    """Reduce buckets at the last observation, 0 before the first."""
    since: int | None = Field(default=None, ge=0, le=2**62)
    """The step at which p or r changed last."""
    big: bool = False
    """Whether the Big phase was last."""
    combine: list[_Measurement] = Field(default_factory=list, max_length=_MOST_NUMBERS)
    """What was measured of the combiner, by number of units."""
    reduce: list[_Measurement] = Field(default_factory=list, max_length=_MOST_NUMBERS)
    """What was measured of the reducer, by number of units."""

    def measurements(self, part: Part) -> list[_Measurement]:
        return self.combine if part == "combine" else self.reduce


class ContTune(Policy):
    """Doubles under backpressure, then takes the fewest units
    that a learned capacity says are enough (baseline).
    """

    options_type: ClassVar[type[Options]] = ContTuneOptions
    options: ContTuneOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._memory = _ContTuneMemory()

    def _decide(self, observation: Observation) -> Decision:
        memory, load = self._memory, observation.load or 0.0
        self._take_in(observation)
        status = f"W is {load:.2f}"
        left = (
            0
            if memory.since is None
            else memory.since + steps_in(self.options.wait_s, observation) - observation.step
        )
        if left > 0:
            return self._no_change(
                observation, f"{status}; the last change has {left} micro-batches more to show its effect"
            )
        if load > 1 or observation.draining:
            memory.big = True
            p, r = self.bounds.clamped(2 * observation.p, 2 * observation.r)
            moved = (p, r) != (observation.p, observation.r)
            reason = (
                f"{status}, backpressure: every part doubles"
                if moved
                else f"{status}, but p and r are at their most"
            )
            return Decision(p=p, r=r, reason=reason, cause="load" if moved else "bounds")
        if memory.big or any(self._is_idle(observation, part) for part in PARTS):
            return self._small(observation, status)
        return self._no_change(observation, f"{status}: no part is idle", cause="stable")

    def _small(self, observation: Observation, status: str) -> Decision:
        answers = {part: self._enough(observation, part) for part in PARTS}
        if not any(answers.values()):
            return self._no_decision(
                observation, f"nothing is decided: arrivals or capacity of every part is not known ({status})"
            )
        self._memory.big = False
        p, r = (answer[0] if (answer := answers[part]) else observation.in_force(part) for part in PARTS)
        why = "; ".join(f"{part}: {answer[1]}" for part, answer in answers.items() if answer)
        p, r = self.bounds.clamped(p, r)
        moved = (p, r) != (observation.p, observation.r)
        return Decision(p=p, r=r, reason=f"{status}, {why}", cause="capacity" if moved else "stable")

    def _is_idle(self, observation: Observation, part: Part) -> bool:
        load, (least, _) = observation.stage(part).load, self.bounds.side(part)
        return is_known(load) and load < self.options.low and observation.in_force(part) > least

    def _enough(self, observation: Observation, part: Part) -> tuple[int, str] | None:
        """The fewest units that are enough for a part, and why. None if the part's arrivals or capacity
        are not known.
        """
        arrivals, measured = observation.stage(part).arrivals, self._memory.measurements(part)
        if not is_known(arrivals) or not 0 <= arrivals <= _MOST or not measured:
            return None
        least, most = self.bounds.side(part)
        needed = arrivals / self.options.target * self._shared(observation, part)
        units = np.array([entry.units for entry in measured], np.float64)
        capacities = np.array([float(np.mean(entry.capacities)) for entry in measured])
        candidates = np.arange(least, most + 1, dtype=np.float64)
        enough = np.flatnonzero(expected_capacity(units, capacities, candidates) >= needed)
        if len(enough):
            answer = int(candidates[enough[0]])
            if np.abs(units - answer).min() <= self.options.alpha:
                return answer, f"{answer} are enough for {needed:.4g} tuples/s by what was measured"
        # Nothing close enough was measured: DS2's linear answer, from the nearest measured number.
        nearest = int(np.argmin(np.abs(units - observation.in_force(part))))
        unit_capacity = capacities[nearest] / units[nearest]
        answer = max(least, whole_above(needed / unit_capacity, most=most))
        return (
            answer,
            (
                f"{answer} for {needed:.4g} tuples/s at {unit_capacity:.4g} each,"
                " because nothing near was measured"
            ),
        )

    def _shared(self, observation: Observation, part: Part) -> float:
        """By how much a part must be faster, because in the fused wiring it has only its share of the
        time.
        """
        own, whole = observation.stage(part).load, observation.load
        if observation.wiring == "split" or not is_known(own) or not is_known(whole) or own <= 0:
            return 1.0
        return max(1.0, min(whole / own, 1_000.0))

    def _no_change(self, observation: Observation, reason: str, *, cause: Cause = "waiting") -> Decision:
        return Decision(p=observation.p, r=observation.r, reason=reason, cause=cause)

    # ---- what is remembered

    def _missed(self, observation: Observation) -> None:
        self._notice_change(observation)

    def _take_in(self, observation: Observation) -> None:
        self._notice_change(observation)
        for part in PARTS:
            capacity, units = observation.stage(part).capacity, observation.in_force(part)
            if is_known(capacity) and 0 < capacity <= _MOST:
                self._measure(self._memory.measurements(part), units, capacity)

    def _measure(self, measured: list[_Measurement], units: int, capacity: float) -> None:
        """Add a capacity. The number of units measured last is the last entry, and the first is forgotten
        if need be.
        """
        before = next((entry for entry in measured if entry.units == units), _Measurement(units, []))
        measured[:] = [entry for entry in measured if entry.units != units][-(_MOST_NUMBERS - 1) :]
        measured.append(_Measurement(units, [*before.capacities, capacity][-_RECENT:]))

    def _notice_change(self, observation: Observation) -> None:
        memory = self._memory
        if memory.p and (memory.p, memory.r) != (observation.p, observation.r):
            memory.since = observation.step
        memory.p, memory.r = observation.p, observation.r

    def _state(self) -> dict[str, Any]:
        return self._memory.model_dump()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._memory = restored(_ContTuneMemory, state)


def expected_capacity(units: Float64s, capacities: Float64s, at: Float64s) -> Float64s:
    """Mean of the Gaussian process over these measurements, shape (len(at),). units, capacities: shape
    (n,), n > 0.
    """
    scale = float(np.abs(capacities).max())
    values = capacities / scale
    lengths = _LENGTHS if len(units) >= 3 else np.array([_FIRST_GUESS])
    fits = [_fit(units, values, length) for length in lengths]
    best = int(np.argmax([likelihood for likelihood, _ in fits]))
    return scale * _kernel(at, units, lengths[best]) @ fits[best][1]


def _fit(units: Float64s, values: Float64s, length: float) -> tuple[float, Float64s]:
    """Log likelihood of a length scale, without its constant, and K^-1 y.
    The variance is the most likely one.
    """
    # The noise on the diagonal also keeps the matrix regular.
    kernel = _kernel(units, units, length) + _NOISE * np.eye(len(units))
    weights = np.linalg.solve(kernel, values)
    variance = max(float(values @ weights) / len(units), 1e-12)
    likelihood = -0.5 * (len(units) * math.log(variance) + float(np.linalg.slogdet(kernel)[1]))
    return likelihood, np.asarray(weights, np.float64)


def _kernel(rows: Float64s, columns: Float64s, length: float) -> Float64s:
    return np.exp(-0.5 * ((rows[:, None] - columns[None, :]) / length) ** 2)
