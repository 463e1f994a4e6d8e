"""The laws of `policy.py` as functions: each is tried on observations of any kind.

`evenflow.testing.check_policy` holds a policy to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenflow.contracts import CounterExample, Law, demand
from evenflow.elasticity.observation import PARTS, Observation, StageObservation
from evenflow.elasticity.policy import CAUSES, Bounds, Decision, Policy
from evenflow.elasticity.registry import create, describe, restore
from evenflow.errors import IncompatibleStateError
from evenflow.plugins import first_paragraph

BOUNDS = Bounds(p_min=1, p_max=12, r_min=1, r_max=8)
_INTERVAL_MS = 5_000
_SEQUENCES = 20
_FIELDS = ("load", "rate", "keys", "busy", "lag", "backlog_ms", "latency_ms")


@dataclass(frozen=True)
class PolicyCase:
    """A policy whose laws are checked."""

    name: str
    """Registered name or `module:Class`, as the user wrote it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The policy's options that differ from their defaults."""

    def new_policy(self) -> Policy:
        """A new policy within `BOUNDS`. ConfigError for an unknown name or option."""
        return create(self.name, bounds=BOUNDS, **self.options)


def sequence(seed: int) -> list[Observation]:
    """Observations one after the other, with gaps, missing numbers and p and r that are out of bounds."""
    rng = np.random.default_rng(seed)
    step, observations = int(rng.integers(0, 5)), []
    for _ in range(25):
        step += int(rng.choice([1, 1, 1, 1, 2, 7]))
        stages = {part: _stage(rng) for part in PARTS if rng.random() < 0.8}
        observations.append(
            Observation(
                step=step,
                interval_ms=_INTERVAL_MS,
                p=int(rng.integers(1, 20)),
                r=int(rng.integers(1, 20)),
                wiring="fused" if rng.random() < 0.5 else "split",
                stages=stages,
                settling=bool(rng.random() < 0.1),
                starting=("the driver has just begun",) if rng.random() < 0.05 else (),
                stale=("the reducer says nothing",) if rng.random() < 0.1 else (),
                **{name: _amount(rng) for name in _FIELDS},
            )
        )
    return observations


def _stage(rng: np.random.Generator) -> StageObservation:
    names = ("load", "arrivals", "capacity", "queue", "longest")
    return StageObservation(**{name: _amount(rng) for name in names})


def _amount(rng: np.random.Generator) -> float | None:
    """Nothing, a usual number, 0 or a number without measure."""
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return float(rng.choice([0.0, 1e18]))
    return float(rng.random() * 3)


def _example(number: int, turn: int, observation: Observation) -> str:
    return f"observation {turn} of sequence {number}: {observation}"


def _within_bounds(case: PolicyCase) -> None:
    for number in range(_SEQUENCES):
        policy = case.new_policy()
        for turn, observation in enumerate(sequence(number)):
            decision, example = policy.decide(observation), _example(number, turn, observation)
            if decision.held:
                _keeps(decision, observation, example)
            else:
                inside = (decision.p, decision.r) == BOUNDS.clamped(decision.p, decision.r)
                demand(inside, example, expected=f"p and r within {BOUNDS!r}", got=decision)
            printable = bool(decision.reason) and decision.reason.isprintable()
            demand(printable, example, expected="a reason in words, on one line", got=repr(decision.reason))
            demand(
                decision.cause in CAUSES,
                example,
                expected=f"a cause of {', '.join(CAUSES)}",
                got=decision.cause,
            )


def _keeps(decision: Decision, observation: Observation, example: str) -> None:
    demand(
        decision.held and (decision.p, decision.r) == (observation.p, observation.r),
        example,
        expected=f"held, with p {observation.p} and r {observation.r}",
        got=decision,
    )


def _held_without_data(case: PolicyCase) -> None:
    changes: tuple[dict[str, Any], ...] = (
        {"stale": ("the combiner says nothing since 30 s",)},
        {"settling": True},
    )
    for changed in changes:
        policy = case.new_policy()
        for step in range(1, 20):
            observation = Observation(
                step=step,
                interval_ms=_INTERVAL_MS,
                p=2,
                r=2,
                load=2.0,
                rate=1e3,
                keys=1e3,
                busy=1.0,
                **changed,
            )
            _keeps(policy.decide(observation), observation, str(observation))
    policy = case.new_policy()
    if policy.needs:
        observation = Observation(step=1, interval_ms=_INTERVAL_MS, p=2, r=2)
        _keeps(policy.decide(observation), observation, str(observation))


def _same_decisions(case: PolicyCase) -> None:
    for number in range(_SEQUENCES):
        policy, twin = case.new_policy(), case.new_policy()
        for turn, observation in enumerate(sequence(number)):
            expected, got = policy.decide(observation), twin.decide(observation)
            demand(got == expected, _example(number, turn, observation), expected=str(expected), got=got)


def _restored_continues(case: PolicyCase) -> None:
    for number in range(_SEQUENCES):
        policy, observations = case.new_policy(), sequence(number)
        middle = number % len(observations)
        for observation in observations[:middle]:
            policy.decide(observation)
        twin = restore(policy.snapshot(), like=policy)
        for turn, observation in enumerate(observations[middle:], start=middle):
            expected, got = policy.decide(observation), twin.decide(observation)
            example = f"restored before observation {middle}; {_example(number, turn, observation)}"
            demand(got == expected, example, expected=str(expected), got=got)
        demand(
            twin.snapshot() == policy.snapshot(), "the end", expected="the same snapshot", got=twin.snapshot()
        )


def _foreign_state_is_refused(case: PolicyCase) -> None:
    policy = case.new_policy()
    fields = json.loads(policy.snapshot())
    wrongs: list[dict[str, Any]] = [
        {"name": "another"},
        {"seed": 8},
        {"options": {"unheard": 1}},
        {"state": []},
    ]
    if fields["state"]:
        wrongs.append({"state": dict.fromkeys(fields["state"], "text")})
    for wrong in wrongs:
        try:
            restore(json.dumps(fields | wrong).encode(), like=policy)
        except IncompatibleStateError:
            continue
        raise CounterExample(f"a snapshot with {wrong}", expected="IncompatibleStateError", got="no error")


def _other_processes_decide_alike(case: PolicyCase) -> None:
    expected = decisions(case.name, case.options)
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, json.dumps([sys.path, case.name, dict(case.options)])],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        example = f"another process, PYTHONHASHSEED={seed}"
        demand(done.returncode == 0, example, expected="no error", got=done.stderr[-1_000:])
        demand(json.loads(done.stdout) == expected, example, expected="the same decisions", got="others")


_SCRIPT = """
import json, sys
sys.path[:], name, options = json.loads(sys.argv[1])
from evenflow.elasticity.checking import decisions
print(json.dumps(decisions(name, options)))
"""


def decisions(name: str, options: Mapping[str, Any]) -> list[list[Any]]:
    """[p, r, cause] of each decision about the sequences, one after the other."""
    policy = PolicyCase(name, options).new_policy()
    answers = [policy.decide(observation) for number in range(5) for observation in sequence(number)]
    return [[decision.p, decision.r, decision.cause] for decision in answers]


def _says_what_it_is(case: PolicyCase) -> None:
    shown = describe(case.name)
    text = (case.new_policy().__doc__ or "").strip()
    demand(first_paragraph(text).endswith("."), "its docstring", expected="a sentence", got=text or "none")
    for option, meaning in shown.options.items():
        words = meaning.partition(") ")[2].strip()
        demand(
            words not in ("", "None"), f"option {option!r}", expected="a description in its Field", got="none"
        )


LAWS: tuple[Law[PolicyCase], ...] = (
    Law("p and r lie within the bounds, whatever is observed", _within_bounds),
    Law("nothing is decided on stale or missing data, or while a plan is being realised", _held_without_data),
    Law("the same seed and observations give the same decisions", _same_decisions),
    Law("a restored policy continues exactly", _restored_continues),
    Law("state of another policy, seed or options is refused", _foreign_state_is_refused),
    Law("every process decides alike", _other_processes_decide_alike),
    Law("its docstring and its options say what they are", _says_what_it_is),
)


def check_policy(policy: str | type[Policy], **options: Any) -> None:
    """Hold a policy to every law of the contract, with these options.

    policy: a registered name, `"module:Class"`, or the class. It takes some seconds, and starts two processes
    that import the class. Raises BrokenLawError with the law, an example, what was expected and what came
    instead. ConfigError if no policy can be made.
    """
    name = create(policy, bounds=BOUNDS, **options).name
    for law in LAWS:
        law.hold(PolicyCase(name, options), who=name)
