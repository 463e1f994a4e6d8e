"""The policy contract: what every way of deciding about p and r promises, and how its state travels.

Laws (tests/unit/elasticity/test_contract.py holds every registered name to them):

* On stale or missing data, and while a plan is being realised or a part begins, there is no action. The
  decision is `held`, it has the p and r in force, and its reason says why.
* The p and r of every other decision lie within the bounds, whatever the observation.
* The same seed, options and observations give the same decisions in every process.
* A policy that is restored from a snapshot continues exactly as the original would have.
* A policy reads no clock. Time is the `step` and `interval_ms` of the observations.

A new policy is one file in `policies` with a subclass and its `Options`, and one line in `registry.py`. It
implements `_decide` for a complete observation, and `_state` and `_load_state` (plain JSON) if it remembers
anything.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import Observation, Part, is_known
from evenflow.errors import IncompatibleStateError
from evenflow.text.options import Options
from evenflow.text.strict_json import read_object

if TYPE_CHECKING:
    from evenflow.partitioners.papers import Paper

SNAPSHOT_VERSION = 1
_MOST_BYTES = 50_000_000
_DEEPEST = 8


Count = Annotated[int, Field(ge=0, le=2**62)]
"""A count in what a policy remembers."""


class ParallelismAt(NamedTuple):
    """The p and r that were in force at a step. In a snapshot it is a list."""

    step: Count
    """The step of the observation, from `Observation.step`."""
    p: Count
    """Routed partitions in force then."""
    r: Count
    """Reduce buckets in force then."""

    @classmethod
    def of(cls, observation: Observation) -> ParallelismAt:
        """What was in force at this observation."""
        return cls(observation.step, observation.p, observation.r)


_Memory = TypeVar("_Memory", bound=BaseModel)


def restored(memory: type[_Memory], state: dict[str, Any]) -> _Memory:
    """What a policy remembers, from the state that it was saved as.

    ValueError unless the state has every field, also within its parts. A default is no replacement for a
    field that is missing: the state is then of something else, or damaged.
    """
    policy_memory = memory.model_validate(state)
    if policy_memory.model_dump(mode="json") != state:
        raise ValueError("it lacks fields")
    return policy_memory


class Bounds(BaseModel):
    """The least and most p and r, all included. p counts workers, r counts reduce buckets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    p_min: int = Field(default=1, ge=1)
    """Least workers."""
    p_max: int = Field(default=1, ge=1)
    """Most workers."""
    r_min: int = Field(default=1, ge=1)
    """Least reduce buckets."""
    r_max: int = Field(default=1, ge=1)
    """Most reduce buckets."""

    def side(self, part: Part) -> tuple[int, int]:
        """(least, most) of p for the combiner, of r for the reducer."""
        return (self.p_min, self.p_max) if part == "combine" else (self.r_min, self.r_max)

    def clamped(self, p: int, r: int) -> tuple[int, int]:
        """The nearest (p, r) within the bounds."""
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
    "starting",
    "unrealised",
    "no-epoch-left",
]
CAUSES: dict[Cause, str] = {
    "set": "p and r are fixed",
    "load": "W, or the busy share, is too high or too low",
    "rate": "tuples/s rose or fell",
    "keys": "the number of distinct keys rose or fell",
    "rate-and-keys": "both rose or fell",
    "capacity": "what comes, against what a unit of p or r can do",
    "reward": "what a bandit expects",
    "stable": "nothing asks for a change",
    "waiting": "what asks for a change has not lasted, or another change is too recent",
    "bounds": "p and r are at their bounds, or had to get within them",
    "missing-data": "what the policy needs is not known, or too old",
    "settling": "a plan is being realised",
    "starting": "a driver has just begun, or p or r has just changed: its first micro-batches do not count",
    "unrealised": "the last plan was not realised in time",
    "no-epoch-left": "the plan topic can hold no further plan",
}
"""The causes of decisions, each with its meaning.
They are few, so that a metric can count decisions by cause.
"""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a policy decided after an observation."""

    p: int
    """Routed partitions that the policy wants."""
    r: int
    """Reduce buckets that the policy wants."""
    reason: str
    """Why, in words."""
    cause: Cause
    """Why, in one word (`CAUSES`)."""
    zone: int | None = None
    """1 under-used, 2 stable, 3 overload (001, ch. 3.3). None if the policy knows no zones."""
    held: bool = False
    """Whether nothing was decided: data is missing, a plan is being realised or a part has just begun."""


class Policy(ABC):
    """One way of deciding about p and r. `evenflow.elasticity.create` makes policies."""

    options_type: ClassVar[type[Options]] = Options
    needs: ClassVar[tuple[str, ...]] = ("load",)
    """Fields of an observation that a decision needs. If one is not known, the decision is held."""
    papers: ClassVar[tuple[Paper, ...]] = ()
    """What to cite for a policy of one's own (`evenflow.partitioners.papers.Paper`).
    Those of evenflow are in `papers`.
    """

    def __init__(self, *, name: str, bounds: Bounds, seed: int, options: Options) -> None:
        self.name = name
        self.bounds = bounds
        self.seed = seed
        self.options = options

    def decide(self, observation: Observation) -> Decision:
        """What p and r should be after this observation. Call it once for each observation, in their
        order.
        """
        missing = [
            *observation.stale,
            *(f"{name} is not known" for name in self._needed() if not is_known(getattr(observation, name))),
        ]
        if missing:
            self._missed(observation)
            return self._no_decision(observation, f"nothing is decided: {'; '.join(missing)}")
        if observation.settling:
            self._missed(observation)
            why = "nothing is decided while the last plan is being realised"
            return self._no_decision(observation, why, cause="settling")
        if observation.starting:
            self._missed(observation)
            return self._no_decision(
                observation, f"nothing is decided: {'; '.join(observation.starting)}", cause="starting"
            )
        decision = self._decide(observation)
        p, r = self.bounds.clamped(decision.p, decision.r)
        if decision.held or (p, r) == (decision.p, decision.r):
            return decision
        bounded = (
            f"{decision.reason} (asked for p {decision.p} and r {decision.r};"
            f" the bounds allow p {p} and r {r})"
        )
        # The bounds are the cause if they prevent every change, or if only they make one.
        forced = (observation.p, observation.r) in ((p, r), (decision.p, decision.r))
        cause = "bounds" if forced else decision.cause
        return Decision(p=p, r=r, reason=bounded, cause=cause, zone=decision.zone)

    @abstractmethod
    def _decide(self, seen: Observation) -> Decision:
        """The decision for an observation that has every field that the policy needs.
        `decide` applies the bounds.
        """

    def _needed(self) -> tuple[str, ...]:
        """The fields that a decision needs. A policy overrides this method where that depends on its
        options.
        """
        return self.needs

    def _missed(self, seen: Observation) -> None:  # noqa: B027 - most remember nothing
        """Take in an observation on which nothing is decided. Counts of consecutive observations begin
        anew.
        """

    def _no_decision(self, seen: Observation, reason: str, *, cause: Cause = "missing-data") -> Decision:
        return Decision(p=seen.p, r=seen.r, reason=reason, cause=cause, held=True)

    # ---- state

    def snapshot(self) -> bytes:
        """All that the policy remembers, and the name, bounds, seed and options that it was made with."""
        fields = {"v": SNAPSHOT_VERSION, "bounds": self.bounds.model_dump(), **self._identity()}
        return json.dumps(fields | {"state": self._state()}).encode()

    def resume(self, snapshot: bytes) -> None:
        """Continue from this snapshot.

        Raises IncompatibleStateError for a snapshot of another policy, seed or options, or for bytes that are
        no snapshot. The bounds are not compared: the present bounds apply to each decision. An option that
        came after the snapshot had its default then.
        """
        try:
            fields = read_object(snapshot, most_bytes=_MOST_BYTES, depth=_DEEPEST)
            version = fields.whole("v", 0, 1_000)
            if version != SNAPSHOT_VERSION:
                raise ValueError(f"it is of version {version}")
            then = fields.fields | {"options": self._completed(fields.fields["options"])}
            differ = [name for name, value in self._identity().items() if then.get(name) != value]
            if differ:
                raise ValueError(f"it was made with another {', '.join(differ)}")
            self._load_whole(fields.part("state").fields)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise IncompatibleStateError(f"no state of policy {self.name}: {error}") from None

    def _load_whole(self, state: dict[str, Any]) -> None:
        """Load the whole state, or leave the policy as it was and raise."""
        # As text, so that a failed `_load_state` cannot have changed the copy.
        before = json.dumps(self._state())
        try:
            self._load_state(state)
        except Exception:
            self._load_state(json.loads(before))
            raise

    def _identity(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed, "options": self.options.model_dump(mode="json")}

    def _completed(self, options: Any) -> Any:
        """The options of a snapshot with the defaults of those that it lacks. As they are if they do not
        fit.
        """
        try:
            return self.options_type.model_validate(options).model_dump(mode="json")
        except ValueError:
            return options

    def _state(self) -> dict[str, Any]:
        return {}

    def _load_state(self, state: dict[str, Any]) -> None:  # noqa: B027 - most remember nothing
        """Restore what `_state` returned. Raises ValueError, KeyError or TypeError for anything else."""
