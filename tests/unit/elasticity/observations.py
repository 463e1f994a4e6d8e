"""Observations of any kind, and a plant that answers to p and r: what the tests of all policies share."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from evenflow.elasticity import Bounds, Decision, Observation, Policy, StageObservation
from evenflow.elasticity.observation import PARTS

BOUNDS = Bounds(p_min=1, p_max=12, r_min=1, r_max=8)
INTERVAL_MS = 5_000

AMOUNT = st.none() | st.floats(0, 1e18, allow_subnormal=False) | st.floats(0, 3, allow_subnormal=False)
STAGE = st.builds(
    StageObservation, load=AMOUNT, arrivals=AMOUNT, capacity=AMOUNT, queue=AMOUNT, longest=AMOUNT
)


@st.composite
def sequences(draw: st.DrawFn, most: int = 25) -> list[Observation]:
    """Observations one after the other, with gaps, missing numbers and what is out of bounds."""
    step, seen = draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(1, most))):
        step += draw(st.sampled_from([1, 1, 1, 1, 2, 7]))
        seen.append(
            Observation(
                step=step,
                interval_ms=INTERVAL_MS,
                p=draw(st.integers(1, 20)),
                r=draw(st.integers(1, 20)),
                wiring=draw(st.sampled_from(["fused", "split"])),
                load=draw(AMOUNT),
                rate=draw(AMOUNT),
                keys=draw(AMOUNT),
                busy=draw(AMOUNT),
                lag=draw(AMOUNT),
                backlog_ms=draw(AMOUNT),
                latency_ms=draw(AMOUNT),
                stages={part: draw(STAGE) for part in PARTS if draw(st.booleans())},
                settling=draw(st.sampled_from([False, False, False, True])),
                stale=draw(st.sampled_from([(), (), (), ("the reducer says nothing",)])),
            )
        )
    return seen


@dataclass
class Plant:
    """A pipeline whose work goes down with p and r, and that obeys at once.

    combine, reduce: workers and reducers that one interval's load keeps busy. fixed: of W, whatever p and r.
    A micro-batch holds what one interval brings; those that are not worked off wait.
    """

    combine: float
    reduce: float
    fixed: float = 0.0
    wiring: str = "fused"
    p: int = 1
    r: int = 1
    rate: float = 1_000.0
    keys: float = 500.0
    waiting: float = 0.0
    """Micro-batches behind."""
    step: int = 0
    actions: list[int] = field(default_factory=list)
    """Change of p + r at each step that changed them."""

    def load(self) -> float:
        """W."""
        own = self._own()
        return self.fixed + (sum(own) if self.wiring == "fused" else max(own))

    def observe(self, **changed: object) -> Observation:
        """After one more micro-batch."""
        self.step += 1
        self.waiting = max(0.0, self.waiting + self.load() - 1)
        combine, reduce = self._own()
        fields: dict = {
            "step": self.step,
            "interval_ms": INTERVAL_MS,
            "p": self.p,
            "r": self.r,
            "wiring": self.wiring,
            "load": self.load(),
            "rate": self.rate,
            "keys": self.keys,
            "busy": min(1.0, self.rate / 10_000),
            "lag": 0.0,
            "backlog_ms": self.waiting * INTERVAL_MS,
            "latency_ms": (1 + self.waiting) * INTERVAL_MS,
            "stages": {
                "combine": self._stage(self.rate, combine),
                "reduce": self._stage(self.keys, reduce),
            },
        }
        return Observation(**{**fields, **changed})

    def obey(self, decision: Decision) -> int:
        """Do as decided; the change of p + r."""
        change = decision.p + decision.r - self.p - self.r
        if (decision.p, decision.r) != (self.p, self.r):
            self.actions.append(change)
        self.p, self.r = decision.p, decision.r
        return change

    def run(self, policy: Policy, steps: int) -> list[int]:
        """The change of p + r at each step."""
        return [self.obey(policy.decide(self.observe())) for _ in range(steps)]

    def _own(self) -> tuple[float, float]:
        return self.combine / self.p, self.reduce / self.r

    def _stage(self, arrivals: float, own: float) -> StageObservation:
        return StageObservation(
            load=own, arrivals=arrivals, capacity=arrivals / own if own else None, queue=0.0
        )


def overloaded(**changed: object) -> Observation:
    """In zone 3, with everything known."""
    return Plant(combine=3.0, reduce=1.0, p=2, r=2).observe(**changed)
