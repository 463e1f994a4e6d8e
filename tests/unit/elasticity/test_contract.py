"""The laws of `evenflow.elasticity.policy`, for every registered name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.contracts import Law
from evenflow.elasticity import (
    CAUSES,
    Bounds,
    Observation,
    Policy,
    create,
    describe,
    names,
    options_type,
    restore,
)
from evenflow.elasticity.checking import LAWS, PolicyCase
from evenflow.errors import ConfigError, IncompatibleStateError
from tests.examples import examples
from tests.hostile import BYTES
from tests.unit.elasticity.observations import BOUNDS, INTERVAL_MS, Plant, overloaded, sequences

each = pytest.mark.parametrize("name", names())
deciding = pytest.mark.parametrize("name", [name for name in names() if name != "fixed"])
few = examples(40)
MOVING = {"set", "load", "rate", "keys", "rate-and-keys", "capacity", "reward", "bounds"}
"""Causes of a change."""


def made(name: str, **options: Any) -> Policy:
    return create(name, bounds=BOUNDS, **options)


@pytest.mark.family
@each
@few
@given(seen=sequences())
def test_p_and_r_lie_within_the_bounds_whatever_is_observed(name: str, seen: list[Observation]) -> None:
    policy = made(name)
    for observation in seen:
        decision = policy.decide(observation)
        if decision.held:
            assert (decision.p, decision.r) == (observation.p, observation.r)
        else:
            assert (decision.p, decision.r) == BOUNDS.clamped(decision.p, decision.r)
        assert decision.reason
        assert decision.reason.isprintable()
        assert decision.cause in CAUSES
        moved = (decision.p, decision.r) != (observation.p, observation.r)
        assert not moved or decision.cause in MOVING


@each
@pytest.mark.parametrize(
    "changed",
    [
        {"stale": ("the combiner says nothing since 30 s",)},
        {"settling": True},
        {"starting": ("the fused stage has just begun",)},
    ],
    ids=["stale", "settling", "starting"],
)
def test_nothing_is_decided_on_stale_data_while_a_plan_is_being_realised_or_a_part_begins(
    name: str, changed: dict
) -> None:
    policy = made(name)
    plant = Plant(combine=3.0, reduce=1.0, p=2, r=2)
    for _ in range(20):
        decision = policy.decide(plant.observe(**changed))
        assert decision.held
        assert (decision.p, decision.r) == (2, 2)
        assert "nothing is decided" in decision.reason


@deciding
def test_nothing_is_decided_on_missing_data(name: str) -> None:
    policy = made(name)
    for step in range(1, 20):
        decision = policy.decide(Observation(step=step, interval_ms=INTERVAL_MS, p=2, r=2))
        assert decision.held
        assert (decision.p, decision.r) == (2, 2)
        assert "not known" in decision.reason


@pytest.mark.family
@each
@few
@given(seen=sequences())
def test_the_same_seed_and_observations_give_the_same_decisions(name: str, seen: list[Observation]) -> None:
    one, other = made(name), made(name)
    assert [one.decide(observation) for observation in seen] == [
        other.decide(observation) for observation in seen
    ]


@pytest.mark.family
@each
@pytest.mark.parametrize(
    "law", [law for law in LAWS if "process" not in law.words], ids=lambda law: law.words
)
def test_a_law_that_a_policy_of_your_own_is_held_to_holds(name: str, law: Law) -> None:
    law.hold(PolicyCase(name), who=name)


WALK = """
import json
from evenflow.elasticity import create, names
from tests.unit.elasticity.observations import BOUNDS, Plant
def walked(name):
    plant = Plant(combine=6.0, reduce=1.5, p=2, r=2)
    plant.run(create(name, bounds=BOUNDS), 40)
    return [plant.p, plant.r, plant.actions]
print(json.dumps({name: walked(name) for name in names()}))
"""


def test_other_processes_decide_alike() -> None:
    def walks(seed: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", WALK],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(json.loads(done.stdout))

    assert walks("1") == walks("2")


@pytest.mark.family
@each
@few
@given(seen=sequences(), at=st.integers(0, 25))
def test_a_restored_policy_continues_exactly(name: str, seen: list[Observation], at: int) -> None:
    policy = made(name)
    for observation in seen[:at]:
        policy.decide(observation)
    restored = restore(policy.snapshot(), like=policy)
    for observation in seen[at:]:
        assert restored.decide(observation) == policy.decide(observation)
    assert restored.snapshot() == policy.snapshot()


@each
def test_state_of_another_policy_seed_or_version_is_refused(name: str) -> None:
    policy = made(name)
    fields = json.loads(policy.snapshot())
    for wrong in ({"name": "another"}, {"seed": 8}, {"v": 2}, {"options": {"unheard": 1}}, {"state": []}):
        with pytest.raises(IncompatibleStateError, match=f"no state of policy {name}"):
            restore(json.dumps(fields | wrong).encode(), like=policy)


@each
def test_an_option_that_came_after_the_snapshot_had_its_default_then(name: str) -> None:
    policy = made(name)
    fields = json.loads(policy.snapshot())
    usual = type(policy).options_type().model_dump(mode="json")
    earlier = {option: value for option, value in fields["options"].items() if value != usual[option]}
    restored = restore(json.dumps(fields | {"options": earlier}).encode(), like=policy)
    assert restored.snapshot() == policy.snapshot()
    for option in earlier:
        without = {other: value for other, value in fields["options"].items() if other != option}
        with pytest.raises(IncompatibleStateError, match="it was made with another options"):
            restore(json.dumps(fields | {"options": without}).encode(), like=policy)


@deciding
def test_state_that_is_none_of_ours_is_refused(name: str) -> None:
    policy = made(name)
    fields = json.loads(policy.snapshot())
    assert fields["state"], "a policy that remembers nothing has nothing to check"
    for wrong in ({}, {"unheard": 1}):
        state = {**fields["state"], **wrong} if wrong else dict.fromkeys(fields["state"], "text")
        with pytest.raises(IncompatibleStateError):
            restore(json.dumps(fields | {"state": state}).encode(), like=policy)


@deciding
def test_state_that_lacks_a_field_is_refused_even_if_the_field_has_a_default(name: str) -> None:
    policy = made(name)
    plant = Plant(combine=3.0, reduce=1.0, p=2, r=2)
    plant.run(policy, 5)
    fields = json.loads(policy.snapshot())
    for state in ({}, *({k: v for k, v in fields["state"].items() if k != lost} for lost in fields["state"])):
        with pytest.raises(IncompatibleStateError, match=f"no state of policy {name}"):
            restore(json.dumps(fields | {"state": state}).encode(), like=policy)


@pytest.mark.family
@each
@pytest.mark.parametrize("number", range(len(BYTES)))
def test_hostile_bytes_are_refused(name: str, number: int) -> None:
    with pytest.raises(IncompatibleStateError):
        restore(BYTES[number], like=made(name))


@each
def test_a_policy_has_no_clock_and_no_random_numbers_but_seeded_ones(name: str) -> None:
    tree = ast.parse(inspect.getsource(sys.modules[type(made(name)).__module__]))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"time", "datetime", "random", "secrets", "uuid", "os"}


@each
def test_every_option_says_what_it_is_and_what_it_is_by_default(name: str) -> None:
    description = describe(name)
    assert description.summary.endswith(".")
    assert len(description.text) > 60
    assert set(description.options) == set(options_type(name).model_fields)
    assert all(meaning.startswith("(default ") for meaning in description.options.values())


def test_an_unknown_name_or_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'prompt-plus'"):
        made("promptplus")
    with pytest.raises(ConfigError, match="did you mean 'tolerance'"):
        made("threshold", tolerence=0.2)
    with pytest.raises(ConfigError, match=r"option 'thres' of prompt-plus: .*greater than 0"):
        made("prompt-plus", thres=-1)
    with pytest.raises(ConfigError, match="step must be below thres"):
        made("prompt-plus", step=0.9)
    with pytest.raises(ConfigError, match="boundary must be below target"):
        made("ds2", target=0.5, boundary=0.5)
    with pytest.raises(ConfigError, match="the least is above the most"):
        create("fixed", bounds=Bounds(p_min=3, p_max=2))


def test_a_policy_that_asks_for_more_than_there_is_says_what_it_asked_for() -> None:
    decision = made("fixed", p=50).decide(overloaded())
    assert decision.p == BOUNDS.p_max
    assert "asked for p 50 and r 2; the bounds allow p 12" in decision.reason


def test_an_observation_is_plain_json() -> None:
    seen = overloaded(stale=("x",))
    assert json.loads(json.dumps(seen.fields()))["stages"]["combine"]["load"] == seen.stage("combine").load
    assert dataclasses.asdict(seen)["stale"] == ("x",)
