"""The names of the policies. A policy is registered by one line in `_POLICIES`, and the contract tests then test it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from evenflow.elasticity.policies.ds2 import Ds2
from evenflow.elasticity.policies.fixed import Fixed
from evenflow.elasticity.policies.linucb import LinUCB
from evenflow.elasticity.policies.mblinucb import MBLinUCB
from evenflow.elasticity.policies.prompt_plus import PromptPlus
from evenflow.elasticity.policies.threshold import Threshold
from evenflow.elasticity.policy import Bounds, Options, Policy
from evenflow.errors import ConfigError
from evenflow.nearest import did_you_mean

_POLICIES: dict[str, type[Policy]] = {
    "fixed": Fixed,
    "prompt-plus": PromptPlus,
    "threshold": Threshold,
    "ds2": Ds2,
    "linucb": LinUCB,
    "mblinucb": MBLinUCB,
}


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a person needs to know to choose a policy and set its options.

    summary: one line. options: the default and the meaning of each option, by name. text: the policy's docstring.
    """

    name: str
    summary: str
    options: Mapping[str, str]
    text: str


def names() -> tuple[str, ...]:
    """Every name that `create` knows."""
    return tuple(_POLICIES)


def options_type(name: str) -> type[Options]:
    """The class that declares this policy's options. ConfigError for an unknown name."""
    return _policy(name).options_type


def create(name: str, *, bounds: Bounds, seed: int = 7, **options: Any) -> Policy:
    """A policy in its first state.

    ConfigError for an unknown name, an unknown option, a value out of range, or bounds of which the least is above the
    most.
    """
    policy = _policy(name)
    if bounds.p_min > bounds.p_max or bounds.r_min > bounds.r_max:
        raise ConfigError(f"the least is above the most in {bounds!r}")
    known = policy.options_type.model_fields
    for option in options:
        if option not in known:
            listed = f"{name} has: {', '.join(known)}" if known else f"{name} has no options"
            raise ConfigError(
                f"unknown option {option!r} of {name}{did_you_mean(option, known)}", hint=listed
            )
    try:
        made_with = policy.options_type(**options)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        what = f"option {where!r} of {name}" if where else f"options of {name}"
        raise ConfigError(f"{what}: {problem['msg'].removeprefix('Value error, ')}") from None
    return policy(name=name, bounds=bounds, seed=seed, options=made_with)


def restore(snapshot: bytes, *, like: Policy) -> Policy:
    """A policy with the name, bounds, seed and options of `like` that continues from this snapshot.

    IncompatibleStateError if the snapshot is not of such a policy.
    """
    made = _policy(like.name)(name=like.name, bounds=like.bounds, seed=like.seed, options=like.options)
    made.resume(snapshot)
    return made


def describe(name: str) -> Description:
    """The description of a policy, from its docstrings and its option declarations. ConfigError for an unknown name."""
    policy = _policy(name)
    return Description(
        name=name,
        summary=(policy.__doc__ or "").strip().splitlines()[0],
        options={
            option: f"(default {info.default}) {info.description}"
            for option, info in policy.options_type.model_fields.items()
        },
        text=inspect.cleandoc(inspect.getmodule(policy).__doc__ or ""),
    )


def _policy(name: str) -> type[Policy]:
    if name not in _POLICIES:
        raise ConfigError(
            f"unknown policy {name!r}{did_you_mean(name, _POLICIES)}", hint=f"known: {', '.join(_POLICIES)}"
        )
    return _POLICIES[name]
