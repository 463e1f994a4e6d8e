"""The names of the algorithms.
One line in `_ENTRIES` registers an algorithm, and the contract tests then cover it.

A name that is not in `_ENTRIES` is asked of `evenflow.plugins`: the entry point of a package, or
`module:Class`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners.affinity.am import Am
from evenflow.partitioners.affinity.cam import Cam
from evenflow.partitioners.affinity.cm import Cm
from evenflow.partitioners.affinity.lm import Lm
from evenflow.partitioners.base import KeyPolicy, Partitioner
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
from evenflow.partitioners.grouping.osg import OnlineShuffleGrouping
from evenflow.partitioners.grouping.pstream import PStream
from evenflow.partitioners.migration.dkg_rivetti import DKGRivetti
from evenflow.partitioners.migration.gedik import Gedik
from evenflow.partitioners.migration.mixed import Mixed
from evenflow.partitioners.papers import Paper
from evenflow.partitioners.partly.partly import PartLy
from evenflow.partitioners.plain import PlainPartitioner
from evenflow.partitioners.prompt.prompt import Prompt
from evenflow.partitioners.prompt.time_based import TimeBased
from evenflow.partitioners.simple.hashing import Hashing
from evenflow.partitioners.simple.shuffle import Shuffle
from evenflow.partitioners.snapshots import OTHER_TYPES, misfit, unpack
from evenflow.plugins import (
    PARTITIONERS,
    checked_class,
    marked,
    mistakes_told,
    name_of,
    summary_of,
    what_is_wrong,
)
from evenflow.text.options import Options, checked_options, choice_with, no_option
from evenflow.text.spelling import did_you_mean


@dataclass(frozen=True)
class _Entry:
    """An algorithm under one of its names."""

    algorithm: type[Partitioner]
    """The class that is created."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The options in which the name differs from the algorithm's own defaults."""


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
    "dkg-rivetti": _Entry(DKGRivetti),
    "mixed": _Entry(Mixed),
    "gedik": _Entry(Gedik),
    "osg": _Entry(OnlineShuffleGrouping),
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
    """The name that `create` knows the algorithm by."""
    summary: str
    """What the algorithm does, in one line."""
    micro_batch: bool
    """Whether the algorithm sees a micro-batch as a whole before it assigns its tuples."""
    key_policy: KeyPolicy
    """Whether a key has one worker ("hashing"), one while its tuples are close in time, or several."""
    options: Mapping[str, str]
    """Name of each option -> its default and its meaning."""
    defaults: Mapping[str, Any]
    """Name of each option -> its default."""
    tells: bool
    """Whether the instances on one stream tell each other what they know."""
    takes_costs: bool
    """Whether tuples may cost differently."""
    papers: tuple[Paper, ...]
    """What to cite for the algorithm."""
    text: str
    """Idea, parameters, cost, state and paper: the docstring of the algorithm's module."""
    package: str | None = None
    """The package that offers the algorithm. None for an algorithm of evenflow, and for `module:Class`."""

    @property
    def marked(self) -> str:
        """The summary, with the package in front if the algorithm is not evenflow's."""
        return marked(self.summary, self.package)

    def as_json(self) -> dict[str, Any]:
        """All but the text, as plain JSON. The names are stable. The unit of an option is "ms", or null if it
        has none or its meaning says it."""
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
            "takes_costs": self.takes_costs,
            "papers": [paper.key for paper in self.papers],
            "options": options,
            "package": self.package,
        }


def built_in() -> tuple[str, ...]:
    """The names of evenflow's own algorithms."""
    return tuple(_ENTRIES)


def names() -> tuple[str, ...]:
    """Every name that `create` knows: those of evenflow, and behind them those that installed packages offer.

    `create` also takes a class of one's own as `module:Class`.
    """
    return (*_ENTRIES, *PARTITIONERS.names(own=_ENTRIES))


def options_type(name: str) -> type[Options]:
    """The class that declares this algorithm's options. ConfigError for an unknown name."""
    return _entry(name).algorithm.options_type


def tells(name: str) -> bool:
    """Whether the instances of this algorithm tell each other what they know.
    ConfigError for an unknown name.
    """
    return _entry(name).algorithm.tells


def weighing() -> list[str]:
    """The names of evenflow's own algorithms that weigh tuples by their costs."""
    return [name for name in built_in() if takes_costs(name)]


def takes_costs(name: str) -> bool:
    """Whether tuples may cost differently for this algorithm. ConfigError for an unknown name."""
    return _entry(name).algorithm.takes_costs


def is_plain_python(name: str) -> bool:
    """Whether this is a partitioner in plain Python, which is slow. ConfigError for an unknown name."""
    return issubclass(_entry(name).algorithm, PlainPartitioner)


def create(
    name: str | type[Partitioner],
    *,
    workers: int,
    seed: int = 7,
    source: int = 0,
    sources: int = 1,
    max_disorder_ms: int | None = None,
    **options: Any,
) -> Partitioner:
    """A partitioner in its first state.
    ConfigError for an unknown name or option, or for a value out of range.

    name: of an algorithm of evenflow or of an installed package, a class of your own as `"module:Class"`, or
    the class itself. Options may stand behind a name (`"pkg:d=3"`) instead of beside it. workers: number of
    workers, 1 to 2^20. seed: of the candidates and of all random draws. source, sources: which of several
    instances on one stream this is, 0 to sources - 1. max_disorder_ms: a tuple more than that many ms before
    the greatest time so far raises DisorderError. None (default) takes tuples in any order of time. options:
    those of the algorithm.
    """
    if isinstance(name, type):
        name = _name_of_class(name)
    name, options = choice_with(name, options)
    entry = _entry(name)
    made_with = checked_options(entry.algorithm.options_type, options, owner=name, defaults=entry.defaults)
    with nullcontext() if name in _ENTRIES else mistakes_told(f"no {name} can be made"):
        return entry.algorithm(
            name=name,
            workers=workers,
            seed=seed,
            source=source,
            sources=sources,
            options=made_with,
            max_disorder_ms=max_disorder_ms,
        )


def restore(snapshot: bytes, *, like: Partitioner | None = None, any_source: bool = False) -> Partitioner:
    """The partitioner that gave this snapshot, in its state of that moment.

    like: a snapshot is refused if it was made with another name, seed, source or options than this
    partitioner. Only the number of workers may differ. any_source: the snapshot of another of the sources is
    taken too. What that one knows becomes the state of `like.source`, but not what it has sent.
    A snapshot never makes evenflow import a module: without `like`, that of a `module:Class` is taken if the
    module has been imported. IncompatibleStateError says why a snapshot cannot be used.
    """
    header, state = unpack(snapshot)
    try:
        _check_name(header["name"], like)
        taken_over = False
        if like is not None:
            if any_source:
                taken_over = header["source"] != like.source
                header["source"] = like.source
            like.check_made_alike(header)
        # Before a partitioner is made: it would allocate arrays for as many workers as the header claims.
        if len(state.get("_sent", ())) != header["workers"]:
            raise misfit(header["name"], f"it has not the loads of {header['workers']} workers")
        partitioner = create(
            header["name"],
            workers=header["workers"],
            seed=header["seed"],
            source=header["source"],
            sources=header["sources"],
            max_disorder_ms=header["max_disorder_ms"],
            **header["options"],
        )
        # No default may stand in for an option that the header lacks.
        partitioner.check_made_alike(header)
        partitioner._resume(header, state)
        if taken_over:
            partitioner._take_over()
    except ConfigError as error:
        raise IncompatibleStateError(f"the snapshot does not fit this evenflow: {error.message}") from None
    except OTHER_TYPES as error:
        raise IncompatibleStateError(f"the snapshot does not fit this evenflow: {error!r}") from None
    return partitioner


def descriptions() -> list[Description]:
    """The descriptions of all names.
    A package's name that cannot be loaded is described by what is wrong with it.
    """
    return [describe(name) if name in _ENTRIES else _described_if_loaded(name) for name in names()]


def _described_if_loaded(name: str) -> Description:
    try:
        return describe(name)
    except ConfigError as error:
        return Description(
            name=name,
            summary=what_is_wrong(error),
            micro_batch=False,
            key_policy="splitting",
            options={},
            defaults={},
            tells=False,
            takes_costs=False,
            papers=(),
            text="",
            package=PARTITIONERS.package(name),
        )


def _check_name(name: object, like: Partitioner | None) -> None:
    """IncompatibleStateError if this name, from a snapshot, is another's or would make us import a module."""
    if like is not None and name != like.name:
        raise misfit(like.name, f"it was made with other values of name: {name!r}")
    if not isinstance(name, str):
        raise TypeError(f"the name {name!r}")
    if name not in _ENTRIES and PARTITIONERS.knows(name) and not PARTITIONERS.is_imported(name):
        raise IncompatibleStateError(
            f"the snapshot was made by {name}, whose module is not imported",
            hint="import it first if you trust the snapshot, or call restore with like=create(...)",
        )


def describe(name: str) -> Description:
    """The description of a name, from docstrings and option declarations. ConfigError for an unknown name."""
    entry = _entry(name)
    fields = entry.algorithm.options_type.model_fields
    defaults = {option: entry.defaults.get(option, info.default) for option, info in fields.items()}
    return Description(
        name=name,
        summary=summary_of(entry.algorithm),
        micro_batch=entry.algorithm.micro_batch,
        key_policy=entry.algorithm.key_policy,
        options={
            option: f"(default {defaults[option]}) {info.description or ''}".rstrip()
            for option, info in fields.items()
        },
        defaults=defaults,
        tells=entry.algorithm.tells,
        takes_costs=entry.algorithm.takes_costs,
        papers=entry.algorithm.papers,
        text=inspect.cleandoc(getattr(inspect.getmodule(entry.algorithm), "__doc__", None) or ""),
        package=None if name in _ENTRIES else PARTITIONERS.package(name),
    )


def _entry(name: str) -> _Entry:
    """The one gate for names, wherever they come from."""
    if name in _ENTRIES:
        return _ENTRIES[name]
    if PARTITIONERS.knows(name):
        algorithm = checked_class(name, _loaded(name), Partitioner, Options, noun="partitioner")  # type: ignore[type-abstract]
        return _Entry(algorithm)
    known = names()
    raise ConfigError(
        f"unknown partitioner {name!r}{did_you_mean(name, known)}",
        hint=f"known: {PARTITIONERS.listed(_ENTRIES)}; one of your own is written as module:Class",
    )


def _loaded(name: str) -> object:
    try:
        return PARTITIONERS.load(name)
    except ConfigError:
        module, _, attribute = name.partition(":")
        if module not in _ENTRIES:
            raise
        # "pkg:d" is an option without its value rather than a class in a module called pkg.
        raise no_option(module, attribute) from None


def _name_of_class(algorithm: type[Partitioner]) -> str:
    """The name by which any process finds this class."""
    for name, entry in _ENTRIES.items():
        if entry.algorithm is algorithm and not entry.defaults:
            return name
    return name_of(algorithm)
