"""The names of the algorithms. One line in `_ENTRIES` registers an algorithm, and the contract tests then cover it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.nearest import did_you_mean
from evenflow.partitioners import former
from evenflow.partitioners.affinity.am import Am
from evenflow.partitioners.affinity.cam import Cam
from evenflow.partitioners.affinity.cm import Cm
from evenflow.partitioners.affinity.lm import Lm
from evenflow.partitioners.base import KeyPolicy, Options, Partitioner
from evenflow.partitioners.choices.d_choices import DChoices
from evenflow.partitioners.choices.pkg import Pkg
from evenflow.partitioners.choices.rr_head import RRHead
from evenflow.partitioners.choices.w_choices import WChoices
from evenflow.partitioners.dalton.batch import DaltonBatch
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.dalton import Dalton
from evenflow.partitioners.evenflow.water_filling import Evenflow
from evenflow.partitioners.grouping.cg import ConsistentGrouping
from evenflow.partitioners.grouping.dagreedy import Dagreedy
from evenflow.partitioners.grouping.dkg import DynamicKeyGrouping
from evenflow.partitioners.grouping.pstream import PStream
from evenflow.partitioners.papers import Paper
from evenflow.partitioners.partly.partly import PartLy
from evenflow.partitioners.prompt.prompt import Prompt
from evenflow.partitioners.prompt.time_based import TimeBased
from evenflow.partitioners.simple.hashing import Hashing
from evenflow.partitioners.simple.shuffle import Shuffle
from evenflow.partitioners.snapshots import OTHER_TYPES, misfit, unpack


@dataclass(frozen=True)
class _Entry:
    """An algorithm, and the defaults in which a name differs from the algorithm's own."""

    algorithm: type[Partitioner]
    defaults: Mapping[str, Any] = field(default_factory=dict)


_ENTRIES: dict[str, _Entry] = {
    "hashing": _Entry(Hashing),
    "shuffle": _Entry(Shuffle),
    "pkg": _Entry(Pkg),
    "pk5": _Entry(Pkg, {"d": 5}),
    "d-choices": _Entry(DChoices),
    "w-choices": _Entry(WChoices),
    "rr-head": _Entry(RRHead),
    "pstream": _Entry(PStream),
    "cm": _Entry(Cm),
    "am": _Entry(Am),
    "cam": _Entry(Cam),
    "lm": _Entry(Lm),
    "dagreedy": _Entry(Dagreedy),
    "cg": _Entry(ConsistentGrouping),
    "dkg": _Entry(DynamicKeyGrouping),
    "dalton": _Entry(Dalton),
    "dalton-cooperative": _Entry(DaltonCooperative),
    "dalton-batch": _Entry(DaltonBatch),
    "prompt": _Entry(Prompt),
    "partly": _Entry(PartLy),
    "time-based": _Entry(TimeBased),
    "evenflow": _Entry(Evenflow),
}


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a person needs to choose an algorithm and to set its options."""

    name: str
    summary: str
    micro_batch: bool
    key_policy: KeyPolicy
    options: Mapping[str, str]
    """Name of each option -> its default and its meaning."""
    defaults: Mapping[str, Any]
    """Name of each option -> its default."""
    tells: bool
    """Whether the instances on one stream tell each other what they know."""
    papers: tuple[Paper, ...]
    """What to cite for the algorithm."""
    text: str
    """Idea, parameters, cost, state and paper: the docstring of the algorithm's module."""

    def as_json(self) -> dict[str, Any]:
        """All but the text, as plain JSON. The names are stable. The unit of an option is "ms", or null if it has none
        or its meaning says it."""
        options = [
            {
                "name": option,
                "default": self.defaults[option],
                "unit": "ms" if option.endswith("_ms") else None,
                "meaning": self.options[option].removeprefix(f"(default {self.defaults[option]}) "),
            }
            for option in self.options
        ]
        return {
            "name": self.name,
            "summary": self.summary,
            "decides_on": "micro-batches" if self.micro_batch else "tuples",
            "key_policy": self.key_policy,
            "tells": self.tells,
            "papers": [paper.key for paper in self.papers],
            "options": options,
        }


def names() -> tuple[str, ...]:
    """Every name that `create` knows."""
    return tuple(_ENTRIES)


def options_type(name: str) -> type[Options]:
    """The class that declares this algorithm's options. ConfigError for an unknown name."""
    return _entry(name).algorithm.options_type


def tells(name: str) -> bool:
    """Whether the instances of this algorithm tell each other what they know. ConfigError for an unknown name."""
    return _entry(name).algorithm.tells


def create(
    name: str,
    *,
    workers: int,
    seed: int = 7,
    source: int = 0,
    sources: int = 1,
    max_disorder_ms: int | None = None,
    **options: Any,
) -> Partitioner:
    """A partitioner in its first state. ConfigError for an unknown name or option, or for a value out of range.

    workers: number of workers, 1 to 2^20. seed: of the candidates and of all random draws. source, sources: which of
    several instances on one stream this is, 0 to sources - 1. max_disorder_ms: a tuple more than that many ms before the
    greatest time so far raises DisorderError. None (default) takes tuples in any order of time. options: those of the
    algorithm.
    """
    entry = _entry(name)
    return entry.algorithm(
        name=name,
        workers=workers,
        seed=seed,
        source=source,
        sources=sources,
        options=_options(name, entry, options),
        max_disorder_ms=max_disorder_ms,
    )


def restore(snapshot: bytes, *, like: Partitioner | None = None, any_source: bool = False) -> Partitioner:
    """The partitioner that gave this snapshot, in its state of that moment.

    like: a snapshot is refused if it was made with another name, seed, source or options than this partitioner. Only
    the number of workers may differ. any_source: the snapshot of another of the sources is taken too, and what it
    knows becomes the state of `like.source`. A snapshot of an earlier evenflow may have its options under former names.
    IncompatibleStateError says why a snapshot cannot be used.
    """
    header, state = unpack(snapshot)
    try:
        known = options_type(header["name"]).model_fields
        header = {**header, "options": former.translated(header["options"], known)}
        if like is not None:
            if any_source:
                header["source"] = like.source
            like.check_made_alike(header)
        # Before a partitioner is made: it would allocate arrays for as many workers as the header claims.
        if len(state.get("_sent", ())) != header["workers"]:
            raise misfit(header["name"], f"it has not the loads of {header['workers']} workers")
        made = create(
            header["name"],
            workers=header["workers"],
            seed=header["seed"],
            source=header["source"],
            sources=header["sources"],
            max_disorder_ms=header.get("max_disorder_ms"),
            **header["options"],
        )
        made._resume(header, state)
    except ConfigError as error:
        raise IncompatibleStateError(f"the snapshot does not fit this evenflow: {error.message}") from None
    except OTHER_TYPES as error:
        raise IncompatibleStateError(f"the snapshot does not fit this evenflow: {error!r}") from None
    return made


def describe(name: str) -> Description:
    """The description of a name, from docstrings and option declarations. ConfigError for an unknown name."""
    entry = _entry(name)
    fields = entry.algorithm.options_type.model_fields
    defaults = {option: entry.defaults.get(option, info.default) for option, info in fields.items()}
    return Description(
        name=name,
        summary=(entry.algorithm.__doc__ or "").strip().splitlines()[0],
        micro_batch=entry.algorithm.micro_batch,
        key_policy=entry.algorithm.key_policy,
        options={
            option: f"(default {defaults[option]}) {info.description}" for option, info in fields.items()
        },
        defaults=defaults,
        tells=entry.algorithm.tells,
        papers=entry.algorithm.papers,
        text=inspect.cleandoc(inspect.getmodule(entry.algorithm).__doc__ or ""),
    )


def _entry(name: str) -> _Entry:
    if name not in _ENTRIES:
        raise ConfigError(
            f"unknown partitioner {name!r}{did_you_mean(name, _ENTRIES)}",
            hint=f"known: {', '.join(_ENTRIES)}",
        )
    return _ENTRIES[name]


def _options(name: str, entry: _Entry, given: Mapping[str, Any]) -> Options:
    known = entry.algorithm.options_type.model_fields
    for option, value in given.items():
        if option in known:
            continue
        if now := former.today(option, known):
            hint = former.how_to_write(option, value)
            raise ConfigError(f"option {option!r} of {name} is called {now} now", hint=hint)
        listed = f"{name} has: {', '.join(known)}" if known else f"{name} has no options"
        raise ConfigError(f"unknown option {option!r} of {name}{did_you_mean(option, known)}", hint=listed)
    try:
        return entry.algorithm.options_type(**{**entry.defaults, **given})
    except ValidationError as error:
        # pydantic reports every problem. The first one is told as a sentence of ours.
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        what = f"option {where!r} of {name}: " if where else f"options of {name}: "
        message = problem["msg"].removeprefix("Value error, ")
        value = f", not {problem['input']!r}" if where else ""
        raise ConfigError(f"{what}{message[0].lower()}{message[1:]}{value}") from None
