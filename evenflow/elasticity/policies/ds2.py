"""DS2: parallelism from true processing rates, as the Flink autoscaler computes it.

A part's true processing rate is its `capacity`: the tuples/s that it could take in, measured while it was
busy. From this rate DS2 computes the parallelism in one step, where other policies approach it in several:

* needed capacity = queue / `catch_up_s` + arrivals * `restart_s` / `catch_up_s` + arrivals / `target`;
* recommended parallelism = `ceil(current * needed / capacity)`. One step multiplies the current one by at
  most `1 + up_factor` and at least `1 - down_factor`.
* An overloaded combiner passes on less than arrives at it. So the reducer's arrivals are scaled up to what
  would arrive if the combiner kept up.
* With `forecast_s`, both parts' arrivals are scaled up to what will come by then, if the trend of the rates
  at the combiner over `window_s` goes on. A trend that falls changes nothing. This is ours, not DS2's.
* Nothing changes while every part's capacity lies between what is needed at utilisation `target + boundary`
  and what is needed at `target - boundary`. Once one part is outside these limits, all parts go to their
  recommendation.
* While a backlog drains, the limits are utilisation 1 and 0, and nothing scales in.
* Scale-in goes to the highest recommendation of the last `scale_down_interval_s`.

Rates are means over `window_s`. After a gap in the observations the means begin anew. In the fused wiring
both parts share one pool in turn, so each part has only its share of the time. The needs of both are then
added up, and p and r grow by the same factor. In the split wiring, a part is left out if its bounds leave it
no choice. DS2 sees only the capacity, not the fixed cost of a micro-batch.

State: the rates of `window_s`, and one falling series of recommendations for each side. Source: Kalavri et
al., "Three steps is all you need", OSDI 2018, and the Flink Kubernetes operator, `flink-autoscaler`:
`AutoScalerUtils.java` (getTargetProcessingCapacity), `ScalingMetricEvaluator.java`
(computeProcessingRateThresholds), `JobVertexScaler.java` (scale, applyScaleDownInterval),
`ScalingExecutor.java` (allChangedVerticesWithinUtilizationTarget). Flink's times are made for jobs that stop
to rescale. The defaults here are shorter. Each option also gives Flink's default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evenflow.elasticity.observation import PARTS, Observation, Part, is_known
from evenflow.elasticity.policy import Count, Decision, Policy, restored
from evenflow.elasticity.recommended import Recommendations, cause_of, steps_in, whole_above
from evenflow.text.options import Options

_MOST_KEPT = 1_000
_MOST_HIDDEN = 1_000.0
"""Largest factor for the reducer's arrivals behind an overloaded combiner.
A larger one is no credible measurement.
"""


class Ds2Options(Options):
    """Options of `ds2`."""

    target: float = Field(default=0.70, gt=0, le=1, description="Utilisation to keep (Flink: 0.7).")
    boundary: float = Field(
        default=0.20,
        ge=0,
        lt=1,
        description="No action while utilisation is within this of target (Flink: 0.3).",
    )
    window_s: float = Field(
        default=15, ge=0, le=3_600, description="Rates are means over this time, s (Flink: 900)."
    )
    forecast_s: float = Field(
        default=0,
        ge=0,
        le=3_600,
        description=(
            "How far ahead a rising trend of the rates is followed, s. It needs a window_s of at least two"
            " batch intervals. 0: no forecast (Flink has none)."
        ),
    )
    catch_up_s: float = Field(
        default=60,
        ge=0,
        le=86_400,
        description="Time in which a queue is to be worked off, s. 0: queues are ignored (Flink: 1800).",
    )
    restart_s: float = Field(
        default=0,
        ge=0,
        le=3_600,
        description=(
            "How long the work stops at a change of parallelism, s. Here it does not stop (Flink: 300)."
        ),
    )
    scale_down_interval_s: float = Field(
        default=60,
        ge=0,
        le=86_400,
        description="Scale-in goes to the highest recommendation of this time, s (Flink: 3600).",
    )
    up_factor: float = Field(
        default=100_000,
        ge=0,
        description="Most that one step adds, as a share of the current (Flink: 100000).",
    )
    down_factor: float = Field(
        default=0.6, ge=0, le=1, description="Most that one step takes away, as a share (Flink: 0.6)."
    )

    @model_validator(mode="after")
    def _limits_are_there(self) -> Ds2Options:
        if self.boundary >= self.target:
            raise ValueError("boundary must be below target")
        return self


class _Rates(BaseModel):
    """Rates of one part, in tuples/s."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    arrivals: float = Field(ge=0)
    """What arrived at the part."""
    unit: float | None = Field(ge=0)
    """The part's capacity over its parallelism, None if the part was not busy."""


class _Ds2Memory(BaseModel):
    """What DS2 remembers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    step: Count = 0
    """The step of the newest rates."""
    combine: list[_Rates] = Field(default_factory=list, max_length=_MOST_KEPT)
    """Rates of the combiner in the last `window_s`, newest last."""
    reduce: list[_Rates] = Field(default_factory=list, max_length=_MOST_KEPT)
    """Rates of the reducer in the last `window_s`, newest last."""
    p: Recommendations = Field(default_factory=Recommendations)
    """What was recommended for p, so that a short lull scales nothing in."""
    r: Recommendations = Field(default_factory=Recommendations)
    """What was recommended for r."""

    def rates(self, part: Part) -> list[_Rates]:
        return self.combine if part == "combine" else self.reduce


class Ds2(Policy):
    """Parallelism from the true processing rate of each part, as the Flink autoscaler (baseline)."""

    options_type: ClassVar[type[Options]] = Ds2Options
    needs: ClassVar[tuple[str, ...]] = ()
    options: Ds2Options

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._memory = _Ds2Memory()

    def _decide(self, observation: Observation) -> Decision:
        parts = self._parts(observation)
        missing = [part for part in parts if not is_known(observation.stage(part).arrivals)]
        if missing:
            return self._no_decision(
                observation, f"nothing is decided: arrivals at {' and '.join(missing)} are not known"
            )
        self._take_in(observation)
        rates = {part: self._mean(part) for part in PARTS}
        unmeasured = [
            part for part in parts if rates[part].unit is None and _has_work(observation, part, rates)
        ]
        if unmeasured:
            return self._no_decision(
                observation, f"nothing is decided: the capacity of {' and '.join(unmeasured)} is not known"
            )
        need = _Need(observation, rates, self.options, parts, growth=self._growth(observation))
        return self._reckoned(observation, need)

    def _parts(self, observation: Observation) -> list[Part]:
        """The parts that matter for p and r."""
        sides = {part: self.bounds.side(part) for part in PARTS}
        return [
            part for part, (least, most) in sides.items() if observation.wiring == "fused" or least < most
        ]

    def _reckoned(self, observation: Observation, need: _Need) -> Decision:
        target, boundary = self.options.target, self.options.boundary
        upper, lower = (1.0, 0.0) if observation.draining else (target + boundary, target - boundary)
        factors = need.factors(target, restart=True)
        # As in Flink, the limit of scale-out leaves the work of a restart out, and the limit of scale-in
        # counts it.
        up = any(factor > 1 for factor in need.factors(min(upper, 1.0), restart=False).values())
        down = lower > 0 and any(factor < 1 for factor in need.factors(lower, restart=True).values())
        calm = not (up or down)
        recommendations = {
            part: self._recommendation(observation, part, 1.0 if calm else factors.get(part, 1.0))
            for part in PARTS
        }
        p, r = (self._stabilised(observation, part, recommendations[part]) for part in PARTS)
        within = f", within {lower:.2f} to {upper:.2f}" if calm else ""
        recommendation = (recommendations["combine"], recommendations["reduce"])
        return Decision(
            p=p,
            r=r,
            reason=f"{need.summary}{within}: decided p {p} and r {r}",
            cause=cause_of(observation, (p, r), recommendation=recommendation, calm=calm, moving="capacity"),
        )

    def _recommendation(self, observation: Observation, part: Part, factor: float) -> int:
        current, (least, most) = observation.in_force(part), self.bounds.side(part)
        factor = min(max(factor, 1 - self.options.down_factor), 1 + self.options.up_factor)
        value = max(whole_above(current * factor, most=most), least)
        return max(value, current) if observation.draining else value

    def _stabilised(self, observation: Observation, part: Part, recommendation: int) -> int:
        memory = self._memory.p if part == "combine" else self._memory.r
        steps = steps_in(self.options.scale_down_interval_s, observation)
        return memory.stabilised(
            recommendation, current=observation.in_force(part), step=observation.step, steps=steps
        )

    # ---- what is remembered

    def _take_in(self, observation: Observation) -> None:
        memory = self._memory
        steps = min(_MOST_KEPT, max(1, steps_in(self.options.window_s, observation)))
        for part in PARTS:
            rates = memory.rates(part)
            if observation.step != memory.step + 1:  # a gap: the means begin anew
                rates.clear()
            rates.append(_rates(observation, part))
            del rates[:-steps]
        memory.step = observation.step

    def _mean(self, part: Part) -> _Rates:
        window = self._memory.rates(part)
        units = [rates.unit for rates in window if rates.unit is not None]
        return _Rates(
            arrivals=math.fsum(rates.arrivals for rates in window) / len(window),
            unit=math.fsum(units) / len(units) if units else None,
        )

    def _growth(self, observation: Observation) -> float:
        """What will come to the combiner in `forecast_s`, over its mean rate. At least 1."""
        ahead = self.options.forecast_s * 1000 / max(observation.interval_ms, 1)
        return growth([rates.arrivals for rates in self._memory.combine], ahead=ahead)

    def _state(self) -> dict[str, Any]:
        return self._memory.model_dump()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._memory = restored(_Ds2Memory, state)


class _Need:
    """What the parts need, as a multiple of their capacity."""

    def __init__(
        self,
        observation: Observation,
        rates: dict[Part, _Rates],
        options: Ds2Options,
        parts: list[Part],
        *,
        growth: float,
    ) -> None:
        self._options, self._parts = options, parts
        self._fused = observation.wiring == "fused"
        self._capacity = {part: (rates[part].unit or 0.0) * observation.in_force(part) for part in PARTS}
        combine, reduce = rates["combine"].arrivals, rates["reduce"].arrivals
        # An overloaded combiner passes on less than arrives at it. `hidden` is by how much.
        hidden = combine / self._capacity["combine"] if self._capacity["combine"] > 0 else 1.0
        now = {"combine": combine, "reduce": reduce * min(max(1.0, hidden), _MOST_HIDDEN)}
        self._arrivals = {part: growth * arrivals for part, arrivals in now.items()}
        self._queue = {part: _queue(observation, part) for part in PARTS}
        soon = f" ({growth:.2f} times as many are forecast)" if growth > 1 else ""
        self.summary = " and ".join(
            f"{part} gets {now[part]:.0f}{soon} of {self._capacity[part]:.0f} tuples/s" for part in parts
        )

    def factors(self, utilisation: float, *, restart: bool) -> dict[Part, float]:
        """The factors by which p and r must change to keep this utilisation and work off the queues.

        restart: whether the tuples that arrive during a restart count as a queue.
        """
        each = {part: self._factor(part, utilisation, restart=restart) for part in self._parts}
        # In the fused wiring the parts take turns in one pool, so their needs add up.
        return dict.fromkeys(self._parts, sum(each.values())) if self._fused else each

    def _factor(self, part: Part, utilisation: float, *, restart: bool) -> float:
        options = self._options
        behind = self._queue[part] + (self._arrivals[part] * options.restart_s if restart else 0.0)
        catch_up = behind / options.catch_up_s if options.catch_up_s else 0.0
        needed = catch_up + self._arrivals[part] / utilisation
        capacity = self._capacity[part]
        return needed / capacity if capacity > 0 else math.inf if needed > 0 else 0.0


def growth(rates: Sequence[float], *, ahead: float) -> float:
    """The rate that is forecast, over the mean of these rates. 1 if there is no trend, or if it falls.

    rates: one for each step, oldest first. ahead: steps from the newest on. The trend is the line of least
    squares.
    """
    if len(rates) < 2 or ahead <= 0:
        return 1.0
    mean, middle = math.fsum(rates) / len(rates), (len(rates) - 1) / 2
    if mean <= 0:
        return 1.0
    squares = math.fsum((step - middle) ** 2 for step in range(len(rates)))
    slope = math.fsum((step - middle) * rate for step, rate in enumerate(rates)) / squares
    return max(1.0, 1 + slope * (middle + ahead) / mean)


def _rates(observation: Observation, part: Part) -> _Rates:
    stage = observation.stage(part)
    unit = stage.capacity / observation.in_force(part) if is_known(stage.capacity) else None
    return _Rates(arrivals=stage.arrivals or 0.0, unit=unit)


def _has_work(observation: Observation, part: Part, rates: dict[Part, _Rates]) -> bool:
    return rates[part].arrivals > 0 or _queue(observation, part) > 0


def _queue(observation: Observation, part: Part) -> float:
    queue = observation.stage(part).queue
    return queue if is_known(queue) else 0.0
