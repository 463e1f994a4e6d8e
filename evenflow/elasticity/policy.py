"""The policy contract: what every way of deciding about p and r promises, and how its state travels.

Laws (tests/unit/elasticity/test_contract.py holds every registered name to them):

* no action on stale or missing data, nor while a plan is being realised: the decision is `held`, with the p and r in
  force, and the reason says so;
* p and r of every other decision lie within the bounds, whatever the observation;
* same seed, options and observations: same decisions in every process;
* `restore(policy.snapshot())` continues exactly as the policy would have;
* no clock: time is the observations' `step` and `interval_ms`.

A new policy is one file in `policies` with a subclass and its `Options`, and one line in `registry.py`. It implements
`_decide` for a complete observation, and `_state` and `_load_state` (plain JSON) if it remembers anything.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import Observation, Part, known
from evenflow.errors import IncompatibleStateError
from evenflow.strict_json import read_object

SNAPSHOT_VERSION = 1
_MOST_BYTES = 50_000_000
_DEEPEST = 8


class Options(BaseModel):
    """Options of one policy: each field has a default, bounds and a description with its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Bounds(BaseModel):
    """p is a number of routed partitions, r of reduce buckets. Both bounds included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    p_min: int = Field(default=1, ge=1)
    p_max: int = Field(default=1, ge=1)
    r_min: int = Field(default=1, ge=1)
    r_max: int = Field(default=1, ge=1)

    def side(self, part: Part) -> tuple[int, int]:
        """Least and most of p for the combiner, of r for the reducer."""
        return (self.p_min, self.p_max) if part == "combine" else (self.r_min, self.r_max)

    def clamped(self, p: int, r: int) -> tuple[int, int]:
        """The nearest allowed pair."""
        return min(max(p, self.p_min), self.p_max), min(max(r, self.r_min), self.r_max)


Cause = Literal[
    "set",
    "load",
    "rate",
    "keys",
    "rate-and-keys",
    "capacity",
    "reward",
    "stable",
    "waiting",
    "bounds",
    "missing-data",
    "settling",
    "unrealised",
    "no-epoch-left",
]
CAUSES: dict[Cause, str] = {
    "set": "p and r are fixed",
    "load": "W, or the busy share, is too high or too low",
    "rate": "tuples/s rose or fell",
    "keys": "the number of distinct keys rose or fell",
    "rate-and-keys": "both rose or fell",
    "capacity": "what comes, against what an instance can do",
    "reward": "what a bandit expects",
    "stable": "nothing asks for a change",
    "waiting": "what asks for a change has not lasted, or another change is too recent",
    "bounds": "p and r are at their bounds, or had to get within them",
    "missing-data": "what the policy needs is not known, or too old",
    "settling": "a plan is being realised",
    "unrealised": "the last plan was not realised in time",
    "no-epoch-left": "the plan topic can hold no further plan",
}
"""What a decision rests on, in one word: so few that decisions can be counted by it."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """p, r: wanted. zone: 1 under-used, 2 stable, 3 overload (001, ch. 3.3), None where the policy knows no zones.

    cause: the reason in one word. held: nothing was decided, because the data does not allow it.
    """

    p: int
    r: int
    reason: str
    cause: Cause
    zone: int | None = None
    held: bool = False


class Policy(ABC):
    """One way of deciding. Made by `evenflow.elasticity.create`, not directly."""

    options_type: ClassVar[type[Options]] = Options
    needs: ClassVar[tuple[str, ...]] = ("load",)
    """Fields of an observation without which nothing is decided."""

    def __init__(self, *, name: str, bounds: Bounds, seed: int, options: Options) -> None:
        self.name = name
        self.bounds = bounds
        self.seed = seed
        self.options = options

    def decide(self, seen: Observation) -> Decision:
        """What p and r should be after this observation. Call it once for each, in order."""
        missing = [
            *seen.stale,
            *(f"{name} is not known" for name in self._needed() if not known(getattr(seen, name))),
        ]
        if missing:
            self._missed(seen)
            return self._held(seen, f"nothing is decided: {'; '.join(missing)}")
        if seen.settling:
            self._missed(seen)
            why = "nothing is decided while the last plan is being realised"
            return self._held(seen, why, cause="settling")
        wanted = self._decide(seen)
        p, r = self.bounds.clamped(wanted.p, wanted.r)
        if wanted.held or (p, r) == (wanted.p, wanted.r):
            return wanted
        bounded = (
            f"{wanted.reason} (asked for p {wanted.p} and r {wanted.r}; the bounds allow p {p} and r {r})"
        )
        forced = (seen.p, seen.r) in ((p, r), (wanted.p, wanted.r))
        cause = "bounds" if forced else wanted.cause
        return Decision(p=p, r=r, reason=bounded, cause=cause, zone=wanted.zone)

    @abstractmethod
    def _decide(self, seen: Observation) -> Decision:
        """For an observation that has all that it `needs`."""

    def _needed(self) -> tuple[str, ...]:
        """What `needs` says, unless the options decide about it."""
        return self.needs

    def _missed(self, seen: Observation) -> None:  # noqa: B027 - most remember nothing
        """An observation that decided nothing: what counts consecutive ones begins anew."""

    def _held(self, seen: Observation, reason: str, *, cause: Cause = "missing-data") -> Decision:
        return Decision(p=seen.p, r=seen.r, reason=reason, cause=cause, held=True)

    # ---- state

    def snapshot(self) -> bytes:
        """All that the policy remembers, with how it was made."""
        made = {"v": SNAPSHOT_VERSION, "bounds": self.bounds.model_dump(), **self._made()}
        return json.dumps(made | {"state": self._state()}).encode()

    def resume(self, snapshot: bytes) -> None:
        """Continue where this snapshot was taken. IncompatibleStateError for one of another policy, seed or options."""
        try:
            fields = read_object(snapshot, most_bytes=_MOST_BYTES, depth=_DEEPEST)
            version = fields.whole("v", 0, 1_000)
            if version != SNAPSHOT_VERSION:
                raise ValueError(f"it is of version {version}")
            differ = [name for name, value in self._made().items() if fields.fields.get(name) != value]
            if differ:
                raise ValueError(f"it was made with another {', '.join(differ)}")
            self._load_whole(fields.part("state").fields)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise IncompatibleStateError(f"no state of policy {self.name}: {error}") from None

    def _load_whole(self, state: dict[str, Any]) -> None:
        """All of a state or nothing of it."""
        before = json.dumps(self._state())
        try:
            self._load_state(state)
        except Exception:
            self._load_state(json.loads(before))
            raise

    def _made(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed, "options": self.options.model_dump(mode="json")}

    def _state(self) -> dict[str, Any]:
        return {}

    def _load_state(self, state: dict[str, Any]) -> None:  # noqa: B027 - most remember nothing
        """Take back what `_state` gave. Raises ValueError, KeyError or TypeError for anything else."""
