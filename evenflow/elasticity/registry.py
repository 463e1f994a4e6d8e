"""The names of the policies.
A policy is registered by one line in `_POLICIES`, and the contract tests then test it.

A name that is not in `_POLICIES` is asked of `evenflow.plugins`: the entry point of a package, or
`module:Class`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.elasticity.policies.conttune import ContTune
from evenflow.elasticity.policies.dhalion import Dhalion
from evenflow.elasticity.policies.ds2 import Ds2
from evenflow.elasticity.policies.fixed import Fixed
from evenflow.elasticity.policies.linucb import LinUCB
from evenflow.elasticity.policies.mblinucb import MBLinUCB
from evenflow.elasticity.policies.prompt_plus import PromptPlus
from evenflow.elasticity.policies.threshold import Threshold
from evenflow.elasticity.policy import Bounds, Policy
from evenflow.errors import ConfigError
from evenflow.plugins import (
    POLICIES,
    checked_class,
    marked,
    mistakes_told,
    name_of,
    summary_of,
    what_is_wrong,
)
from evenflow.text.options import Options, checked_options, choice_with, no_option
from evenflow.text.spelling import did_you_mean

if TYPE_CHECKING:
    from evenflow.partitioners.papers import Paper

_POLICIES: dict[str, type[Policy]] = {
    "fixed": Fixed,
    "prompt-plus": PromptPlus,
    "threshold": Threshold,
    "ds2": Ds2,
    "dhalion": Dhalion,
    "conttune": ContTune,
    "linucb": LinUCB,
    "mblinucb": MBLinUCB,
}


_SUFFIXES = {"_ms": "ms", "_s": "s", "_percent": "%"}
"""Units by the ending of an option's name."""


@dataclass(frozen=True, kw_only=True)
class PolicyDescription:
    """What a person needs to know to choose a policy and set its options."""

    name: str
    """The name that `create` knows the policy by."""
    summary: str
    """What the policy does, in one line."""
    options: Mapping[str, str]
    """The default and the meaning of each option, by name."""
    text: str
    """The docstring of the policy's module."""
    defaults: Mapping[str, Any]
    """The default of each option."""
    units: Mapping[str, str]
    """The unit of each option that has one."""
    papers: tuple[Paper, ...] = ()
    """What the class itself names to cite."""
    package: str | None = None
    """The package that offers the policy. None for a policy of evenflow, and for `module:Class`."""

    @property
    def marked(self) -> str:
        """The summary, with the package in front if the policy is not evenflow's."""
        return marked(self.summary, self.package)

    def as_json(self) -> dict[str, Any]:
        """All but the text, as plain JSON. The names are stable.
        The unit of an option is null if it has none.
        """
        options = [
            {
                "name": option,
                "default": self.defaults[option],
                "unit": self.units.get(option),
                "meaning": meaning.removeprefix(f"(default {self.defaults[option]}) "),
            }
            for option, meaning in self.options.items()
        ]
        return {"name": self.name, "summary": self.summary, "options": options, "package": self.package}


def built_in() -> tuple[str, ...]:
    """The names of evenflow's own policies."""
    return tuple(_POLICIES)


def names() -> tuple[str, ...]:
    """Every name that `create` knows: those of evenflow, and behind them those that installed packages offer.

    `create` also takes a class of one's own as `module:Class`.
    """
    return (*_POLICIES, *POLICIES.names(own=_POLICIES))


def options_type(name: str) -> type[Options]:
    """The class that declares this policy's options. ConfigError for an unknown name."""
    return _policy(name).options_type


def create(name: str | type[Policy], *, bounds: Bounds, seed: int = 7, **options: Any) -> Policy:
    """A policy in its first state.

    name: of a policy of evenflow or of an installed package, a class of your own as `"module:Class"`, or the
    class itself. Options may stand behind a name (`"ds2:target=0.7"`) instead of beside it.
    ConfigError for an unknown name, an unknown option, a value out of range, or bounds of which the least is
    above the most.
    """
    if isinstance(name, type):
        name = _name_of_class(name)
    name, options = choice_with(name, options)
    policy = _policy(name)
    if bounds.p_min > bounds.p_max or bounds.r_min > bounds.r_max:
        raise ConfigError(f"the least is above the most in {bounds!r}")
    made_with = checked_options(policy.options_type, options, owner=name)
    with nullcontext() if name in _POLICIES else mistakes_told(f"no {name} can be made"):
        return policy(name=name, bounds=bounds, seed=seed, options=made_with)


def restore(snapshot: bytes, *, like: Policy) -> Policy:
    """A policy with the name, bounds, seed and options of `like` that continues from this snapshot.

    IncompatibleStateError if the snapshot is not of such a policy.
    """
    policy = _policy(like.name)(name=like.name, bounds=like.bounds, seed=like.seed, options=like.options)
    policy.resume(snapshot)
    return policy


def describe(name: str) -> PolicyDescription:
    """The description of a policy, from its docstrings and its option declarations.
    ConfigError for an unknown name.
    """
    policy = _policy(name)
    fields = policy.options_type.model_fields
    return PolicyDescription(
        name=name,
        summary=summary_of(policy),
        options={
            option: f"(default {info.default}) {info.description or ''}".rstrip()
            for option, info in fields.items()
        },
        defaults={option: info.default for option, info in fields.items()},
        units={
            option: unit for option, info in fields.items() if (unit := _unit(option, info.json_schema_extra))
        },
        text=inspect.cleandoc(getattr(inspect.getmodule(policy), "__doc__", None) or ""),
        papers=policy.papers,
        package=None if name in _POLICIES else POLICIES.package(name),
    )


def descriptions() -> list[PolicyDescription]:
    """The descriptions of all names.
    A package's name that cannot be loaded is described by what is wrong with it.
    """
    return [describe(name) if name in _POLICIES else _described_if_loaded(name) for name in names()]


def _described_if_loaded(name: str) -> PolicyDescription:
    try:
        return describe(name)
    except ConfigError as error:
        return PolicyDescription(
            name=name,
            summary=what_is_wrong(error),
            options={},
            text="",
            defaults={},
            units={},
            package=POLICIES.package(name),
        )


def _unit(option: str, extra: object) -> str | None:
    """The unit that an option's field declares (`json_schema_extra={"unit": ...}`), or the one that its
    name ends with.
    """
    if isinstance(extra, Mapping) and "unit" in extra:
        return str(extra["unit"])
    return next((unit for suffix, unit in _SUFFIXES.items() if option.endswith(suffix)), None)


def _policy(name: str) -> type[Policy]:
    """The one gate for names, wherever they come from."""
    if name in _POLICIES:
        return _POLICIES[name]
    if POLICIES.knows(name):
        return checked_class(name, _loaded(name), Policy, Options, noun="policy")  # type: ignore[type-abstract]
    known = names()
    raise ConfigError(
        f"unknown policy {name!r}{did_you_mean(name, known)}",
        hint=f"known: {POLICIES.listed(_POLICIES)}; one of your own is written as module:Class",
    )


def _loaded(name: str) -> object:
    try:
        return POLICIES.load(name)
    except ConfigError:
        module, _, attribute = name.partition(":")
        if module not in _POLICIES:
            raise
        # "fixed:p" is an option without its value rather than a class in a module called fixed.
        raise no_option(module, attribute) from None


def _name_of_class(policy: type[Policy]) -> str:
    """The name by which any process finds this class."""
    return next((name for name, known in _POLICIES.items() if known is policy), None) or name_of(policy)
